//! Scratch.
#[test]
fn traces() {
    let sets: &[&[&str]] = &[
        &["d-psgd"],
        &["gossipgrad"],
        &["osgp"],
        &["noloco"],
        &["moshpit"],
        &["choco"],
        &["d2"],
        &["ad-psgd"],
        &["beer"],
        &["deepsqueeze"],
        &["relaysgd"],
        &["ssp"],
        &["asp"],
        &["fedbuff"],
        &["easgd"],
        &["d-psgd", "choco", "ad-psgd", "relaysgd", "osgp"],
    ];
    let n: u64 = std::env::var("N")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(30);
    for set in sets {
        for seed in 0..n {
            match murmurate_sim::seeds::run_seed_of(seed, set) {
                Ok(r) => println!(
                    "{set:?} {seed} {} {:?} {:?}",
                    r.trace, r.counters, r.consensus_distance
                ),
                Err(e) => println!("{set:?} {seed} ERR {e}"),
            }
        }
    }
}
