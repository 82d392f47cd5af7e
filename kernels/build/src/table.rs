//! The table of entries that `build` prints.

use crate::manifest::Pack;

/// Prints every entry of `packs` that was assembled.
pub fn print(packs: &[&Pack]) {
    let image_entries = |pack: &&Pack| {
        pack.images.iter().flat_map(|i| i.entries.iter().map(|e| e.name.len())).max().unwrap_or(0)
    };
    let widest = packs.iter().map(image_entries).max().unwrap_or(0);
    println!(
        "{:16} {:8} {:widest$} {:>9} {:>7} {:>8} {:>8} {:>10}",
        "file", "arch", "entry", "registers", "spilled", "shared", "threads", "parameters"
    );
    for pack in packs {
        for (image, entry) in pack.images.iter().flat_map(|i| i.entries.iter().map(move |e| (i, e))) {
            let (Some(registers), Some(spilled)) = (entry.registers, entry.spill_bytes) else { continue };
            println!(
                "{:16} {:8} {:widest$} {registers:9} {spilled:7} {:8} {:8} {:10}",
                image.file,
                pack.architecture,
                entry.name,
                entry.shared_bytes.unwrap_or(0),
                entry.threads.unwrap_or(0),
                entry.parameter_bytes.unwrap_or(0),
            );
        }
    }
    println!();
    println!("{:12} {:>7} {:>11} {:>13}", "pack", "entries", "bytes", "uncompressed");
    for pack in packs {
        let entries: usize = pack.images.iter().map(|image| image.entries.len()).sum();
        println!("{:12} {entries:7} {:11} {:13}", pack.architecture, pack.bytes, pack.uncompressed_bytes);
    }
}
