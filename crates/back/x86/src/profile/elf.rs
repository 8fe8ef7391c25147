//! A small ELF object in memory that names functions: what GDB reads.

use super::Symbol;

const HEADER: usize = 64;
const SECTION: usize = 64;
const SYMBOL: usize = 24;
/// The sections: null, `.text`, `.symtab`, `.strtab`, `.shstrtab`.
const SECTIONS: usize = 5;
const TEXT: u16 = 1;
const STRTAB: u32 = 3;
const SHSTRTAB: u16 = 4;
const SECTION_NAMES: &[u8] = b"\0.text\0.symtab\0.strtab\0.shstrtab\0";

/// A section's header but for its name and what never differs.
#[derive(Clone, Copy, Default)]
struct Section {
    name: u32,
    kind: u32,
    flags: u64,
    address: u64,
    offset: usize,
    size: usize,
    link: u32,
    info: u32,
    alignment: u64,
    entry: usize,
}

impl Section {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend(self.name.to_le_bytes());
        out.extend(self.kind.to_le_bytes());
        out.extend(self.flags.to_le_bytes());
        out.extend(self.address.to_le_bytes());
        out.extend((self.offset as u64).to_le_bytes());
        out.extend((self.size as u64).to_le_bytes());
        out.extend(self.link.to_le_bytes());
        out.extend(self.info.to_le_bytes());
        out.extend(self.alignment.to_le_bytes());
        out.extend((self.entry as u64).to_le_bytes());
    }
}

/// An object whose `.text` is `len` bytes at `address`, with a symbol for each function. The code itself is not in it.
pub(super) fn object(address: u64, len: usize, symbols: &[Symbol]) -> Vec<u8> {
    let mut names = vec![0];
    let mut table = vec![0; SYMBOL];
    for symbol in symbols {
        let name = u32::try_from(names.len()).expect("names of functions are less than 4 GiB");
        // A zero byte would end the name; no name has one.
        names.extend(symbol.name.bytes().filter(|&byte| byte != 0));
        names.push(0);
        table.extend(name.to_le_bytes());
        // A global function, visible to all, in `.text`, at its offset there.
        table.extend([0x12, 0]);
        table.extend(TEXT.to_le_bytes());
        table.extend((symbol.offset as u64).to_le_bytes());
        table.extend((symbol.size as u64).to_le_bytes());
    }
    let table_at = HEADER + SECTIONS * SECTION;
    let names_at = table_at + table.len();
    let section_names_at = names_at + names.len();
    let sections = [
        Section::default(),
        // No bits in the file (8); allocated and executable.
        Section {
            name: 1,
            kind: 8,
            flags: 0x6,
            address,
            offset: table_at,
            size: len,
            alignment: 16,
            ..Section::default()
        },
        Section {
            name: 7,
            kind: 2,
            offset: table_at,
            size: table.len(),
            link: STRTAB,
            // The first symbol that is not local.
            info: 1,
            alignment: 8,
            entry: SYMBOL,
            ..Section::default()
        },
        Section {
            name: 15,
            kind: 3,
            offset: names_at,
            size: names.len(),
            alignment: 1,
            ..Section::default()
        },
        Section {
            name: 23,
            kind: 3,
            offset: section_names_at,
            size: SECTION_NAMES.len(),
            alignment: 1,
            ..Section::default()
        },
    ];

    let mut out = Vec::with_capacity(section_names_at + SECTION_NAMES.len());
    // 64 bits, little-endian, version 1, System V.
    out.extend(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    out.extend(1_u16.to_le_bytes()); // Relocatable: symbols count from their section's address.
    out.extend(62_u16.to_le_bytes()); // x86-64.
    out.extend(1_u32.to_le_bytes());
    out.extend(0_u64.to_le_bytes()); // No entry,
    out.extend(0_u64.to_le_bytes()); // no program headers.
    out.extend((HEADER as u64).to_le_bytes()); // Section headers follow.
    out.extend(0_u32.to_le_bytes());
    out.extend((HEADER as u16).to_le_bytes());
    out.extend([0; 4]);
    out.extend((SECTION as u16).to_le_bytes());
    out.extend((SECTIONS as u16).to_le_bytes());
    out.extend(SHSTRTAB.to_le_bytes());
    for section in &sections {
        section.write(&mut out);
    }
    out.extend(table);
    out.extend(names);
    out.extend(SECTION_NAMES);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(bytes: &[u8], at: usize, size: usize) -> u64 {
        let mut value = [0; 8];
        value[..size].copy_from_slice(&bytes[at..at + size]);
        u64::from_le_bytes(value)
    }

    fn text(bytes: &[u8], at: usize) -> String {
        let end = bytes[at..]
            .iter()
            .position(|&byte| byte == 0)
            .expect("a name ends");
        String::from_utf8(bytes[at..at + end].to_vec()).expect("names are text")
    }

    #[test]
    fn the_object_is_parsed_back() {
        let symbols = [
            Symbol {
                name: "first".to_owned(),
                offset: 0,
                size: 16,
            },
            Symbol {
                name: "a second one".to_owned(),
                offset: 16,
                size: 48,
            },
        ];
        let object = object(0x7000_0000_1000, 4000, &symbols);
        assert_eq!(&object[..4], b"\x7fELF");
        assert_eq!(
            (number(&object, 16, 2), number(&object, 18, 2)),
            (1, 62),
            "relocatable, x86-64"
        );
        let (sections, size, count) = (
            number(&object, 40, 8) as usize,
            number(&object, 58, 2) as usize,
            number(&object, 60, 2) as usize,
        );
        assert_eq!((sections, size, count), (64, 64, 5));
        let section =
            |n: usize, field: usize, bytes| number(&object, sections + n * size + field, bytes);
        let names_at = section(number(&object, 62, 2) as usize, 24, 8) as usize;
        let names: Vec<_> = (0..count)
            .map(|n| text(&object, names_at + section(n, 0, 4) as usize))
            .collect();
        assert_eq!(names, ["", ".text", ".symtab", ".strtab", ".shstrtab"]);
        assert_eq!(
            (section(1, 16, 8), section(1, 32, 8)),
            (0x7000_0000_1000, 4000),
            "address and size of .text"
        );
        let (table, bytes, strings) = (
            section(2, 24, 8) as usize,
            section(2, 32, 8),
            section(3, 24, 8) as usize,
        );
        assert_eq!((bytes, section(2, 40, 4)), (3 * 24, 3));
        let found: Vec<_> = (1..3)
            .map(|n| {
                let at = table + n * SYMBOL;
                assert_eq!(
                    (number(&object, at + 4, 1), number(&object, at + 6, 2)),
                    (0x12, 1),
                    "a function in .text"
                );
                Symbol {
                    name: text(&object, strings + number(&object, at, 4) as usize),
                    offset: number(&object, at + 8, 8) as usize,
                    size: number(&object, at + 16, 8) as usize,
                }
            })
            .collect();
        assert_eq!(found, symbols);
        assert_eq!(
            names_at + SECTION_NAMES.len(),
            object.len(),
            "nothing behind the last section"
        );
    }
}
