//! Reads what PTX says about itself.

use std::collections::BTreeSet;

/// Facts of one PTX text.
pub struct Ptx {
    /// The architecture after `.target`, such as `sm_80`.
    pub target: String,
    /// Names of its entries.
    pub entries: BTreeSet<String>,
}

impl Ptx {
    /// Reads a PTX text.
    pub fn parse(text: &str) -> Self {
        let target = text.lines().find_map(|line| line.strip_prefix(".target "));
        let name = |line: &str| {
            let rest = line.split_once(".entry ")?.1;
            Some(rest.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '$').next()?.to_owned())
        };
        Self {
            target: target.unwrap_or_default().trim().to_owned(),
            entries: text.lines().filter_map(name).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn target_and_entries_are_read() {
        let ptx = Ptx::parse(".version 8.8\n.target sm_80\n.visible .entry one(\n.entry two()\nret;\n");
        assert_eq!(ptx.target, "sm_80");
        assert_eq!(ptx.entries.into_iter().collect::<Vec<_>>(), ["one", "two"]);
    }
}
