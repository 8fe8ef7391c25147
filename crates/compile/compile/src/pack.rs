//! Many short-lived buffers in one piece of memory.
//!
//! [`pack`] says where in one allocation each buffer lies, such that those that are needed at the same
//! time do not overlap. Finding the smallest allocation is hard in general; a few greedy orders are
//! tried and the best result is taken. In the order by size it is the rule by which most neural-network
//! runtimes plan their arenas, and mostly within a few percent of the lower bound.
//!
//! It packs the scratch arrays of programs (`bound.rs`, and `layout.rs` of the runtime) and those that leave a frame (`spill.rs`).

use std::ops::Range;

/// A buffer that needs memory for a while.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// How many bytes.
    pub bytes: u64,
    /// Its first byte lies at a multiple of this, a power of two.
    pub align: u64,
    /// When it is needed; never, if this is empty.
    pub live: Range<u32>,
}

/// Where buffers lie.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Packed {
    /// By request: its first byte. 0 for one that is never needed, which overlaps others.
    pub offsets: Vec<u64>,
    /// How many bytes there must be, at most the sum of all requests (rounded up to the largest
    /// alignment); saturates at `u64::MAX`, for which nothing is allocated.
    pub bytes: u64,
}

/// Places buffers in one piece of memory, whose first byte is as aligned as any of them needs. Those whose
/// lives overlap do not. Deterministic.
///
/// ```
/// use loopwright_compile::{Request, pack};
///
/// let request = |bytes, live| Request { bytes, align: 64, live };
/// // The first and the last are never needed at the same time.
/// let packed = pack(&[request(1000, 0..2), request(100, 1..3), request(900, 2..3)]);
/// assert_eq!(packed.offsets, [0, 1024, 0]);
/// assert_eq!(packed.bytes, 1124);
/// ```
pub fn pack(requests: &[Request]) -> Packed {
    let mut order: Vec<usize> = (0..requests.len())
        .filter(|&at| needed(&requests[at]))
        .collect();
    let least = lower_bound(requests);
    let mut best: Option<Packed> = None;
    // Large ones first; long-lived ones first; in the order of time. All sorts are stable.
    let keys: [Key; 3] = [
        |request| (!request.bytes, !length(request)),
        |request| (!length(request), !request.bytes),
        |request| (u64::from(request.live.start), !request.bytes),
    ];
    for key in keys {
        order.sort_by_key(|&at| key(&requests[at]));
        let packed = place(requests, &order);
        if best.as_ref().is_none_or(|best| packed.bytes < best.bytes) {
            best = Some(packed);
        }
        if best.as_ref().is_some_and(|best| best.bytes <= least) {
            break;
        }
        order.sort_unstable();
    }
    let mut packed = best.unwrap_or_default();
    // What is never needed lies within it all the same, so that addresses can be had for it.
    for request in requests {
        packed.bytes = packed.bytes.max(request.bytes);
    }
    packed
}

/// What requests are placed in the order of.
type Key = fn(&Request) -> (u64, u64);

fn needed(request: &Request) -> bool {
    !request.live.is_empty() && request.bytes > 0
}

fn length(request: &Request) -> u64 {
    u64::from(request.live.end - request.live.start)
}

/// The most bytes that are needed at one time. Something begins whenever that grows.
fn lower_bound(requests: &[Request]) -> u64 {
    let at = |time: u32| {
        let live = requests.iter().filter(|other| other.live.contains(&time));
        live.fold(0u64, |sum, other| sum.saturating_add(other.bytes))
    };
    let begins = requests.iter().filter(|request| needed(request));
    begins
        .map(|request| at(request.live.start))
        .max()
        .unwrap_or(0)
}

/// Gives each buffer, in this order, the lowest place that those placed before leave free.
fn place(requests: &[Request], order: &[usize]) -> Packed {
    let mut packed = Packed {
        offsets: vec![0; requests.len()],
        bytes: 0,
    };
    // By offset.
    let mut placed: Vec<usize> = Vec::with_capacity(order.len());
    for &at in order {
        let request = &requests[at];
        let mut offset = 0u64;
        for &other in &placed {
            let lives = &requests[other].live;
            if lives.start >= request.live.end || request.live.start >= lives.end {
                continue;
            }
            let taken = packed.offsets[other];
            if offset.saturating_add(request.bytes) <= taken {
                break;
            }
            let end = taken.saturating_add(requests[other].bytes);
            offset = offset.max(align_up(end, request.align));
        }
        packed.offsets[at] = offset;
        packed.bytes = packed.bytes.max(offset.saturating_add(request.bytes));
        let position = placed.partition_point(|&other| packed.offsets[other] <= offset);
        placed.insert(position, at);
    }
    packed
}

fn align_up(offset: u64, align: u64) -> u64 {
    offset.checked_next_multiple_of(align).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A small generator, so that the cases are the same every time.
    struct Numbers(u64);

    impl Numbers {
        fn below(&mut self, bound: u64) -> u64 {
            self.0 = self
                .0
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (self.0 >> 33) % bound
        }
    }

    #[test]
    fn what_lives_at_the_same_time_does_not_overlap() {
        let mut numbers = Numbers(7);
        for round in 0..2000 {
            let count = numbers.below(12);
            let requests: Vec<Request> = (0..count)
                .map(|_| {
                    let start = numbers.below(8) as u32;
                    Request {
                        bytes: numbers.below(300),
                        align: 1 << numbers.below(7),
                        live: start..start + numbers.below(6) as u32,
                    }
                })
                .collect();
            let packed = pack(&requests);
            assert_eq!(packed, pack(&requests), "round {round}: deterministic");
            let align = requests.iter().map(|request| request.align).max();
            let sum: u64 = requests
                .iter()
                .map(|request| request.bytes.next_multiple_of(align.unwrap_or(1)))
                .sum();
            assert!(packed.bytes <= sum, "round {round}: {packed:?}");
            assert!(packed.bytes >= lower_bound(&requests), "round {round}");
            let used: Vec<(usize, &Request)> = requests
                .iter()
                .enumerate()
                .filter(|(_, request)| needed(request))
                .collect();
            for &(a, left) in &used {
                let start = packed.offsets[a];
                assert!(start.is_multiple_of(left.align), "round {round}: {a}");
                assert!(start + left.bytes <= packed.bytes, "round {round}: {a}");
                for &(b, right) in used.iter().filter(|(b, _)| *b != a) {
                    let together =
                        left.live.start < right.live.end && right.live.start < left.live.end;
                    let apart = start + left.bytes <= packed.offsets[b]
                        || packed.offsets[b] + right.bytes <= start;
                    assert!(apart || !together, "round {round}: {a} and {b}: {packed:?}");
                }
            }
        }
    }

    #[test]
    fn a_chain_takes_two_buffers() {
        let chain: Vec<Request> = (0..10)
            .map(|at| Request {
                bytes: 4096,
                align: 64,
                live: at..at + 2,
            })
            .collect();
        assert_eq!(pack(&chain).bytes, 2 * 4096);
    }

    #[test]
    fn too_much_is_too_much_and_nothing_is_nothing() {
        let huge = Request {
            bytes: u64::MAX - 8,
            align: 64,
            live: 0..1,
        };
        assert_eq!(pack(&[huge.clone(), huge]).bytes, u64::MAX);
        assert_eq!(pack(&[]), Packed::default());
        let unused = Request {
            bytes: 100,
            align: 64,
            live: 3..3,
        };
        assert_eq!(pack(&[unused.clone(), unused]).bytes, 100);
    }
}
