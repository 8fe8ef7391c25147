//! A download hands its values over once.

use loopwright_runtime::Download;

fn twice(download: Download) {
    let _ = download.wait();
    let _ = download.wait();
}

fn main() {
    let _ = twice;
}
