//! Fuzzes a backend: `hunt DEVICE FIRST COUNT`.
use loopwright_backend::{KernelBackend, backends};
use loopwright_conformance::generate::random_case;
use loopwright_conformance::oracle::Oracle;
use std::collections::BTreeMap;
use std::sync::Arc;
use loopwright_cc as _;
use loopwright_interp as _;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let backend: Arc<dyn KernelBackend> = backends().into_iter().find(|b| b.name() == args[1]).unwrap();
    let (first, count): (u64, u64) = (args[2].parse().unwrap(), args[3].parse().unwrap());
    let oracle = Oracle::new(backend);
    if args.len() > 4 {
        let case = random_case(first);
        println!("{}", case.graph);
        let g = case.graph.clone().with_stores();
        println!("{}", g);
        println!("{:?}", case.sizes);
        if let Some(s) = &case.schedule { println!("{}", loopwright_looptree::print_schedule(&g, s));
          println!("{}", loopwright_looptree::print_tree(&g, &loopwright_looptree::LoopTree::new(&g, s).unwrap())); }
        println!("{:?}", oracle.check(&case));
        return;
    }
    let mut kinds: BTreeMap<String, (usize, u64)> = BTreeMap::new();
    let mut bad = 0;
    let show = |seed: u64, e: &loopwright_conformance::oracle::Mismatch, kinds: &mut BTreeMap<String,(usize,u64)>| {
        let key: String = format!("{}: {}", e.blame, e.message.chars().take(110).filter(|c| !c.is_ascii_digit()).collect::<String>());
        kinds.entry(key).or_insert((0, seed)).0 += 1;
    };
    let mut last = std::time::Instant::now(); let start = std::time::Instant::now();
    let mut batch = Vec::new();
    let mut seeds = Vec::new();
    for seed in first..first + count {
        let case = random_case(seed);
        match oracle.prepare(&case) {
            Ok(p) => { batch.push(p); seeds.push(seed); }
            Err(e) => { bad += 1; show(seed, &e, &mut kinds); }
        }
        if batch.len() == 32 || seed + 1 == first + count {
            for (r, seed) in oracle.check_batch(&batch).into_iter().zip(&seeds) {
                if let Err(e) = r { bad += 1; show(*seed, &e, &mut kinds); }
            }
            eprintln!("BATCH {seed} {:?}", last.elapsed()); last = std::time::Instant::now(); batch.clear(); seeds.clear();
        }
    }
    for (k, (n, s)) in kinds { println!("{n:6} seed {s}: {k}"); }
    println!("{bad} bad of {count} in {:?}", start.elapsed());
}
