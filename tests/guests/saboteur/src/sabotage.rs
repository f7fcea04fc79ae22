//! Which callbacks can go wrong, and how: the list that the guest and the rows of the tests are made of.

named! {
    /// The functions of the contract that a guest exports. `init` comes last: once it has gone wrong, nothing else works.
    Callback {
        Describe = "describe",
        ListTools = "list-tools",
        CallTool = "call-tool",
        ListResources = "list-resources",
        ListTemplates = "list-templates",
        ReadResource = "read-resource",
        Subscribe = "subscribe",
        Unsubscribe = "unsubscribe",
        ListPrompts = "list-prompts",
        GetPrompt = "get-prompt",
        Complete = "complete",
        GetTask = "get-task",
        UpdateTask = "update-task",
        CancelTask = "cancel-task",
        Migrate = "migrate",
        Save = "save",
        Restore = "restore",
        Init = "init",
    }
}

named! {
    /// What goes wrong.
    Fault {
        Trap = "trap",
        Loop = "loop",
        /// Waits in the host for longer than any call may last.
        Sleep = "sleep",
        Grow = "grow",
        /// Opens things of the host and lets go of none, until the host gives it no more.
        Hoard = "hoard",
    }
}

named! {
    /// What is wrong with a list, whichever it is.
    Listing {
        /// One page with more entries than anybody wants.
        Many = "many",
        /// Pages without end.
        Endless = "endless",
        /// A page that says that it is followed by itself, with nothing on it.
        Circle = "circle",
        /// Names that are longer than anybody reads.
        LongNames = "long-names",
        /// Names that are empty, or there twice, or that have control characters.
        StrangeNames = "strange-names",
    }
}
