//! The codes of what `murmurate doctor` finds. docs/errors.md explains each of them.

/// A problem with a section of its own in docs/errors.md. Its number never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    /// The configuration cannot be used.
    Configuration = 1,
    /// The running daemon is of another version.
    Version = 2,
    /// The daemon's directory cannot be used.
    Directory = 3,
    /// Others can read a secret.
    Permissions = 4,
    /// The disk is too small.
    Disk = 5,
    /// The memory is too small.
    Memory = 6,
    /// The processor lacks vector instructions.
    Processor = 7,
    /// Data or a model file cannot be used.
    Data = 8,
    /// This daemon's part of the data is too small, or does not exist.
    Shard = 9,
    /// The device cannot be used.
    Device = 10,
    /// Another process has a port to listen on.
    Port = 11,
    /// Another process has the HTTP port.
    HttpPort = 12,
    /// Others can read the HTTP pages.
    HttpPublic = 13,
    /// The kernel allows small socket buffers only.
    Buffers = 14,
    /// The process may open few files only.
    Files = 15,
    /// A name cannot be looked up.
    Name = 20,
    /// A machine answers over TCP but not over UDP.
    Udp = 21,
    /// A machine does not answer.
    Unreachable = 22,
    /// Another daemon answers than the address names.
    OtherDaemon = 23,
    /// No daemon of this version answers.
    OtherProgram = 24,
    /// Other daemons of the run have other settings.
    OtherSettings = 25,
    /// The clock is wrong.
    Clock = 30,
    /// The certificate no longer lets this daemon in.
    Certificate = 31,
    /// The certificate ends soon.
    CertificateEnds = 32,
    /// The invite cannot be used.
    Invite = 33,
    /// Nothing lets this daemon into the run that it joins.
    NoMember = 34,
    /// The register of members cannot be read.
    Register = 35,
    /// The running daemon says that something is wrong.
    Trouble = 40,
    /// The daemon ended without leaving.
    Killed = 41,
    /// The daemon runs and does not answer.
    Silent = 42,
    /// The checkpoint cannot be used.
    Checkpoint = 43,
}

impl Code {
    /// As it is printed.
    pub(crate) fn name(self) -> String {
        format!("M{:03}", self as u16)
    }
}

/// The page with a section for each code.
pub(crate) const PAGE: &str = include_str!("../../../docs/errors.md");

/// The codes of the page.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    let headings = PAGE.lines().filter_map(|line| line.strip_prefix("## "));
    headings.filter_map(|heading| Some(heading.split_once(':')?.0))
}

#[cfg(test)]
mod tests {
    use super::Code::*;
    use super::*;

    const ALL: [Code; 31] = [
        Configuration,
        Version,
        Directory,
        Permissions,
        Disk,
        Memory,
        Processor,
        Data,
        Shard,
        Device,
        Port,
        HttpPort,
        HttpPublic,
        Buffers,
        Files,
        Name,
        Udp,
        Unreachable,
        OtherDaemon,
        OtherProgram,
        OtherSettings,
        Clock,
        Certificate,
        CertificateEnds,
        Invite,
        NoMember,
        Register,
        Trouble,
        Killed,
        Silent,
        Checkpoint,
    ];

    #[test]
    fn every_code_has_its_section_and_no_section_is_left_over() {
        let expected = ALL.map(Code::name);
        assert_eq!(names().collect::<Vec<_>>(), expected);
    }
}
