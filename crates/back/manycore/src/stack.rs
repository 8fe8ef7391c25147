//! How much of a core's local memory a kernel's frames take, as far as the compiler says.

use loopwright_emit::Emitted;

/// Bytes of the deepest stack that an entry of this name can have, at most; `None` where the compiler says nothing
/// of it.
///
/// `frames` is what `-fstack-usage` writes: a line for each function with its place and name, its bytes, and whether
/// they are all. An entry calls the kernel, which calls one after the other the functions of its parallel loops. Of
/// other functions all are taken to be on the way, since none calls itself.
pub(crate) fn deepest(frames: &str, emitted: &Emitted, symbol: &str) -> Option<u64> {
    let body = body_of(&emitted.source, symbol)?;
    let (mut entry, mut kernel) = (0, None);
    let mut others = 0;
    // By the number of the loop.
    let mut loops: Vec<(&str, u64)> = Vec::new();
    for line in frames.lines() {
        let mut fields = line.split('\t');
        let (Some(place), Some(bytes)) = (fields.next(), fields.next()) else {
            continue;
        };
        let name = place.rsplit(':').next()?;
        // Copies that the compiler makes are named after the function, with something behind a dot.
        let name = name.split('.').next()?;
        let bytes: u64 = bytes.parse().ok()?;
        if name == symbol {
            entry += bytes;
        } else if name == body {
            kernel = Some(kernel.unwrap_or(0) + bytes);
        } else if let Some(number) = name.strip_prefix(body).and_then(loop_number) {
            match loops.iter_mut().find(|(known, _)| *known == number) {
                Some((_, sum)) => *sum += bytes,
                None => loops.push((number, bytes)),
            }
        } else if !name.starts_with("kernel_") && !name.starts_with("lw_kernel_") {
            others += bytes;
        }
    }
    let deepest_loop = loops.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0);
    // A kernel that was put into its entry has no frame of its own.
    Some(entry + kernel.unwrap_or(0) + deepest_loop + others)
}

/// The function that an entry calls.
fn body_of<'a>(source: &'a str, symbol: &str) -> Option<&'a str> {
    let start = source.find(&format!("void {symbol}("))?;
    let call = source[start..]
        .lines()
        .map(str::trim)
        .find(|line| line.ends_with(");"))?;
    call.split('(').next()
}

/// `N` of `_loopN` and of `_loopN_task`.
fn loop_number(suffix: &str) -> Option<&str> {
    let number = suffix.strip_prefix("_loop")?;
    let number = number.strip_suffix("_task").unwrap_or(number);
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_on_the_way_add_up() {
        let frames = "\
module.c:9:1:fn_f\t100\tstatic
module.c:20:1:kernel_main_loop0\t1000\tstatic
module.c:30:1:kernel_main_loop0_task\t16\tstatic
module.c:40:1:kernel_main_loop1.constprop\t3000\tstatic
module.c:50:1:kernel_main\t500\tstatic
module.c:60:1:lw_kernel_main\t8\tstatic
module.c:70:1:kernel_main2\t70000\tstatic
module.c:80:1:lw_kernel_main2\t8\tstatic
";
        let source = "void lw_kernel_main(void *const *args, const lw_runtime *rt) {\n    \
                      kernel_main(args[0], rt);\n}\nvoid lw_kernel_main2(void *const *args) {\n    \
                      kernel_main2(args[0]);\n}\n";
        let emitted = Emitted {
            source: source.to_owned(),
            kernels: Vec::new(),
            math: Vec::new(),
        };
        let main = deepest(frames, &emitted, "lw_kernel_main");
        assert_eq!(main, Some(8 + 500 + 3000 + 100));
        let other = deepest(frames, &emitted, "lw_kernel_main2");
        assert_eq!(other, Some(8 + 70000 + 100));
        assert_eq!(deepest(frames, &emitted, "lw_kernel_none"), None);
    }
}
