//! First inputs of fuzz targets, derived from files that tests keep up to date: golden bytes of the
//! wire, and the presets. A corpus alone would lose them when the wire format changes.

use crate::command::Failure;
use std::fs;
use std::path::Path;

/// Writes the seeds of a target into a directory and returns how many there are.
pub(crate) fn write(target: &str, directory: &Path) -> Result<usize, Failure> {
    fs::create_dir_all(directory)?;
    match target {
        "frame" | "header" => convert("protocol/tests/golden", "hex", directory, from_hex),
        "config" => convert("strategies/src/grid/presets", "toml", directory, |text| {
            Some(text.as_bytes().to_vec())
        }),
        _ => Ok(0),
    }
}

fn convert(
    source: &str,
    extension: &str,
    directory: &Path,
    bytes: fn(&str) -> Option<Vec<u8>>,
) -> Result<usize, Failure> {
    let mut count = 0;
    for entry in fs::read_dir(source)? {
        let path = entry?.path();
        let (Some(name), Some(found)) = (path.file_stem(), path.extension()) else {
            continue;
        };
        if found != extension {
            continue;
        }
        let text = fs::read_to_string(&path)?;
        let bytes = bytes(&text)
            .ok_or_else(|| Failure::new(format!("{} is not hexadecimal", path.display())))?;
        fs::write(directory.join(name), bytes)?;
        count += 1;
    }
    if count == 0 {
        return Err(Failure::new(format!("{source} has no .{extension} file")));
    }
    Ok(count)
}

/// The bytes of hexadecimal digits over any number of lines.
fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u32>> = text
        .chars()
        .filter(|c| !c.is_whitespace())
        .map(|c| c.to_digit(16))
        .collect();
    let digits = digits.filter(|digits| digits.len() % 2 == 0)?;
    let pairs = digits.chunks_exact(2);
    pairs
        .map(|pair| u8::try_from(pair[0] * 16 + pair[1]).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_digits_become_bytes() {
        assert_eq!(from_hex("00ff\n1A"), Some(vec![0, 255, 26]));
        assert_eq!(from_hex("0"), None);
        assert_eq!(from_hex("0g"), None);
    }
}
