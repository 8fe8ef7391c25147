//! The counter-based random number generator Threefry-2x32 with 20 rounds, of Salmon, Moraes, Dror
//! and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011).

/// How far the second word is rotated in each round, repeating after eight.
const ROTATIONS: [u32; 8] = [13, 15, 26, 6, 17, 29, 16, 24];

/// Skein's key schedule constant, which keeps an all-zero key from being weak.
const PARITY: u32 = 0x1bd1_1bda;

/// The 64 random bits of `counter` under `key`, as [`Op::Threefry`](crate::Op::Threefry) has them; in all three the low word
/// is the first.
pub fn threefry(key: u64, counter: u64) -> u64 {
    let key = [key as u32, (key >> 32) as u32];
    let schedule = [key[0], key[1], PARITY ^ key[0] ^ key[1]];
    let mut x = [counter as u32, (counter >> 32) as u32];
    x[0] = x[0].wrapping_add(schedule[0]);
    x[1] = x[1].wrapping_add(schedule[1]);
    for round in 0..20 {
        x[0] = x[0].wrapping_add(x[1]);
        x[1] = x[1].rotate_left(ROTATIONS[round % 8]) ^ x[0];
        // The key goes in again after every four rounds.
        if round % 4 == 3 {
            let injection = round / 4 + 1;
            x[0] = x[0].wrapping_add(schedule[injection % 3]);
            x[1] = x[1].wrapping_add(schedule[(injection + 1) % 3]);
            x[1] = x[1].wrapping_add(injection as u32);
        }
    }
    u64::from(x[0]) | u64::from(x[1]) << 32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The known-answer vectors published with Random123.
    #[test]
    fn known_answers() {
        let word = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        for (counter, key, answer) in [
            (0, 0, word(0x6b20_0159, 0x99ba_4efe)),
            (u64::MAX, u64::MAX, word(0x1cb9_96fc, 0xbb00_2be7)),
            (
                word(0x243f_6a88, 0x85a3_08d3),
                word(0x1319_8a2e, 0x0370_7344),
                word(0xc492_3a9c, 0x483d_f7a0),
            ),
        ] {
            let got = threefry(key, counter);
            assert_eq!(got, answer, "key {key:x} counter {counter:x}: {got:x}");
        }
    }
}
