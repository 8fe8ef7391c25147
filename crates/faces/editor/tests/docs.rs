//! The book has the table of keys that the editor has.

use loopwright_editor::keys_as_markdown;
use std::path::Path;

#[test]
fn the_page_lists_every_key() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/editor.md");
    let page = std::fs::read_to_string(&path).expect("the page can be read");
    let start = "<!-- keys: written by `BLESS=1 cargo test -p loopwright-editor` -->\n";
    let end = "<!-- end of keys -->\n";
    let (before, rest) = page.split_once(start).expect("the table has a start");
    let (listed, after) = rest.split_once(end).expect("the table has an end");
    let table = format!("{}\n", keys_as_markdown());
    if std::env::var_os("BLESS").is_some() {
        let page = format!("{before}{start}{table}{end}{after}");
        std::fs::write(&path, page).expect("the page can be written");
    } else {
        assert_eq!(
            listed, table,
            "the page (left) is not the table (right); BLESS=1 writes it anew"
        );
    }
}
