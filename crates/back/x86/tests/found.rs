//! Random programs that were computed wrongly once, or refused.

use loopwright_backend::{Backend, Describe};
use loopwright_conformance::generate::random_case;
use loopwright_conformance::oracle::Oracle;
use loopwright_x86::{Level, X86};

/// What was wrong, and the numbers of the programs that show it.
const FOUND: [(&str, &[u64]); 7] = [
    (
        "a sum was computed into a variable before the variable was there",
        &[18_031_688_452_632_884_522, 15_541_354_726_171_518_289],
    ),
    (
        "a panel was packed for one of two steps that read through the same view",
        &[17_616_632_831_555_845_031],
    ),
    (
        "lanes were taken for neighbours in a layout whose blocks do not divide each other",
        &[
            17_824_160_642_094_595_654,
            17_409_105_021_017_628_747,
            17_409_105_021_017_705_588,
            16_994_049_399_940_803_005,
            15_333_826_915_632_907_583,
        ],
    ),
    (
        "parallel loops inside of a loop that folds were made one",
        &[18_239_216_263_171_169_913, 16_348_234_904_113_462_015],
    ),
    (
        "an integer outside of a parallel loop was wanted in all lanes inside",
        &[16_348_234_904_113_334_582],
    ),
    (
        "blocks of a layout that do not divide the one around them did not begin anew in it",
        &[10_406_899_835_293_491_323],
    ),
    (
        "an index that is the same for all lanes had been computed in lanes before",
        &[2_024_543_589_417_750_478],
    ),
];

#[test]
fn programs_that_were_wrong_once() {
    for level in Level::ALL {
        let backend = X86::new().at(level);
        if let Err(why) = backend.availability() {
            println!("skipped: {why}");
            continue;
        }
        let oracle = Oracle::new(Backend::kernel_backend(backend)).without_texts();
        for (what, seeds) in FOUND {
            for seed in seeds {
                if let Err(mismatch) = oracle.check(&random_case(*seed)) {
                    panic!("{level}, program {seed} ({what}): {mismatch}");
                }
            }
        }
    }
}
