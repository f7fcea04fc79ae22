//! A guest that does with files whatever it is told, by the raw functions of WASI: no library in between makes paths tidy.

use wasip2::filesystem::preopens::get_directories;
use wasip2::filesystem::types::{Descriptor, DescriptorFlags, ErrorCode, NewTimestamp, OpenFlags, PathFlags};

/// Most that is read of a file.
const READ_BYTES_MAX: u64 = 4_096;

#[derive(Default)]
struct Explorer;

#[guesthouse::server]
impl Explorer {
    /// Does something with a path below a folder. The answer begins with `ok` or with `error`.
    #[tool]
    fn act(
        /// What to do.
        op: &str,
        /// The granted folder to start from.
        folder: &str,
        /// The path, as it is handed to the host.
        path: &str,
        /// Another folder, where there is a second path.
        to_folder: Option<String>,
        /// The second path.
        to: Option<String>,
    ) -> String {
        let to_folder = to_folder.as_deref().unwrap_or(folder);
        match act(op, folder, path, to_folder, to.as_deref().unwrap_or_default()) {
            Ok(text) => format!("ok {text}"),
            Err(text) => format!("error {text}"),
        }
    }

    /// Reads a file the way programs do.
    #[tool]
    fn read(path: &str) -> String {
        std::fs::read_to_string(path).map_or_else(|error| format!("error {error}"), |text| format!("ok {text}"))
    }

    /// The paths of all folders.
    #[tool]
    fn folders() -> String {
        get_directories().into_iter().map(|(_, path)| path).collect::<Vec<_>>().join("\n")
    }

    /// Asks the host for all that there is at once, of the first folder's file `sparse`, or of something that is no file.
    #[tool]
    fn gulp(what: &str) -> String {
        gulp(what).map_or_else(|error| format!("error {error}"), |bytes| format!("ok {bytes}"))
    }

    /// All variables with their values.
    #[tool]
    fn variables() -> String {
        std::env::vars().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("\n")
    }
}

fn gulp(what: &str) -> Result<usize, String> {
    let file = || {
        let (folder, _) = get_directories().into_iter().next().ok_or("no folder")?;
        folder.open_at(PathFlags::empty(), "sparse", OpenFlags::empty(), DescriptorFlags::READ).map_err(|error| error.name().to_owned())
    };
    match what {
        "file" => file()?.read(u64::MAX, 0).map(|(bytes, _)| bytes.len()).map_err(|error| error.name().to_owned()),
        "stream" => {
            let stream = file()?.read_via_stream(0).map_err(|error| error.name().to_owned())?;
            stream.blocking_read(u64::MAX).map(|bytes| bytes.len()).map_err(|error| error.to_string())
        }
        "random" => Ok(wasip2::random::random::get_random_bytes(u64::MAX).len()),
        "input" => match wasip2::cli::stdin::get_stdin().blocking_read(u64::MAX) {
            Ok(bytes) => Ok(bytes.len()),
            Err(wasip2::io::streams::StreamError::Closed) => Ok(0),
            Err(error) => Err(error.to_string()),
        },
        "zeroes" => wasip2::cli::stdout::get_stdout().write_zeroes(u64::MAX).map(|()| 0).map_err(|error| error.to_string()),
        other => Err(format!("nothing called {other}")),
    }
}

fn folder(path: &str) -> Result<Descriptor, String> {
    get_directories().into_iter().find(|(_, found)| found == path).map(|(folder, _)| folder).ok_or_else(|| format!("no folder {path}"))
}

fn act(op: &str, from: &str, path: &str, to_folder: &str, to: &str) -> Result<String, String> {
    let folder_at = folder(from)?;
    let code = |error: ErrorCode| error.name().to_owned();
    let done = |result: Result<(), ErrorCode>| result.map(|()| String::new()).map_err(code);
    let open = |flags, mode| folder_at.open_at(PathFlags::SYMLINK_FOLLOW, path, flags, mode).map_err(code);
    match op {
        "read" => {
            let (bytes, _) = open(OpenFlags::empty(), DescriptorFlags::READ)?.read(READ_BYTES_MAX, 0).map_err(code)?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        }
        "write" => {
            let file = open(OpenFlags::CREATE, DescriptorFlags::READ | DescriptorFlags::WRITE)?;
            file.write(b"written by the guest", 0).map(|count| count.to_string()).map_err(code)
        }
        "truncate" => open(OpenFlags::TRUNCATE, DescriptorFlags::READ | DescriptorFlags::WRITE).map(|_| String::new()),
        // Opened to be read only, and written all the same.
        "sneak" => {
            let file = open(OpenFlags::empty(), DescriptorFlags::READ)?;
            file.write(b"x", 0).map_err(code)?;
            done(file.set_size(0))
        }
        "list" => {
            let entries = open(OpenFlags::DIRECTORY, DescriptorFlags::READ)?.read_directory().map_err(code)?;
            let mut names = Vec::new();
            while let Some(entry) = entries.read_directory_entry().map_err(code)? {
                names.push(entry.name);
            }
            names.sort();
            Ok(names.join(" "))
        }
        "stat" => folder_at.stat_at(PathFlags::SYMLINK_FOLLOW, path).map(|stat| stat.size.to_string()).map_err(code),
        "readlink" => folder_at.readlink_at(path).map_err(code),
        "mkdir" => done(folder_at.create_directory_at(path)),
        "rmdir" => done(folder_at.remove_directory_at(path)),
        "unlink" => done(folder_at.unlink_file_at(path)),
        "touch" => done(folder_at.set_times_at(PathFlags::SYMLINK_FOLLOW, path, NewTimestamp::Now, NewTimestamp::Now)),
        "rename" => done(folder_at.rename_at(path, &folder(to_folder)?, to)),
        "link" => done(folder_at.link_at(PathFlags::empty(), path, &folder(to_folder)?, to)),
        "symlink" => done(folder_at.symlink_at(to, path)),
        other => Err(format!("no operation {other}")),
    }
}
