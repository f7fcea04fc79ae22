//! Everything that the hostile guest does, by name: the list that its tools and the rows of the tests are made of.

#[macro_use]
#[path = "named.rs"]
mod named;

named! {
    /// What a tool does. Some do nothing wrong, so that a test has something to compare with.
    Attack {
        Echo = "echo",
        Loop = "loop",
        Grow = "grow",
        Recurse = "recurse",
        Trap = "trap",
        Panic = "panic",
        Huge = "huge",
        Alias = "alias",
        LogFlood = "log-flood",
        LogLong = "log-long",
        LogLongName = "log-long-name",
        Progress = "progress",
        ProgressFlood = "progress-flood",
        ProgressFalling = "progress-falling",
        Changes = "changes",
        ChangesThenFail = "changes-then-fail",
        ChangesThenAsk = "changes-then-ask",
        ChangesFlood = "changes-flood",
        Context = "context",
        NotFound = "not-found",
        InvalidParams = "invalid-params",
        MissingCapability = "missing-capability",
        Internal = "internal",
        Rpc = "rpc",
        BadJson = "bad-json",
        DeepJson = "deep-json",
        DeepStructured = "deep-structured",
        DeepMeta = "deep-meta",
        DeepError = "deep-error",
        DeepQuestion = "deep-question",
        DeepLog = "deep-log",
        QuestionFlood = "question-flood",
        QuestionTwice = "question-twice",
        StateHuge = "state-huge",
        HugeNumber = "huge-number",
        LongNumber = "long-number",
        DuplicateKeys = "duplicate-keys",
        MetaNoObject = "meta-no-object",
        BadText = "bad-text",
        BadTextInError = "bad-text-in-error",
        BadTextInJson = "bad-text-in-json",
        BadTextInLog = "bad-text-in-log",
        BadTextInProgress = "bad-text-in-progress",
        BadTextInChange = "bad-text-in-change",
        Surrogate = "surrogate",
        SparseGrowth = "sparse-growth",
        Print = "print",
        PrintFlood = "print-flood",
        Surroundings = "surroundings",
        Work = "work",
        ProgressQuick = "progress-quick",
        WrongOutput = "wrong-output",
        WithoutOutput = "without-output",
        SchemaNoJson = "schema-no-json",
        SchemaNoObject = "schema-no-object",
        SchemaInvalid = "schema-invalid",
        SchemaFarReference = "schema-far-reference",
        SchemaDeep = "schema-deep",
        SchemaHugeNumber = "schema-huge-number",
        SchemaDuplicateKeys = "schema-duplicate-keys",
        HeaderInvalid = "header-invalid",
        SchemaVerbatim = "schema-verbatim",
        SchemaSlow = "schema-slow",
        Trace = "trace",
        Count = "count",
        Who = "who",
    }
}

named! {
    /// What `init` does, as the operator configures it.
    Start {
        Refuse = "refuse",
        Trap = "trap",
        Loop = "loop",
        Grow = "grow",
        Talk = "talk",
    }
}
