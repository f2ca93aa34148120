//! A schedule as one member sees it: for every shard its stages, and the values that each stage
//! sums.

use super::islands::Islands;
use super::shape::{Plain, Trees};
use super::{Schedule, Solution, doubling};
use crate::Members;
use crate::sorted::SortedMap;

/// One member's part in one shard. Its value is at first its own contribution.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Role {
    pub(crate) stages: Vec<SumStage>,
    /// Set if its value is the whole sum after the last stage.
    pub(crate) ends: bool,
    /// The members that it forwards the aggregate to.
    pub(crate) serves: Vec<usize>,
    /// The member that sends it the aggregate; none where it makes it.
    pub(crate) server: Option<usize>,
}

/// A stage of a sum: this member's value goes to one member; then the values of others are added to
/// it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SumStage {
    pub(crate) to: Option<usize>,
    pub(crate) from: Vec<Source>,
}

/// A value that another member sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) member: usize,
    /// In which of its stages: zero is its own contribution.
    pub(crate) value: u8,
    /// Whose contributions may be in it.
    pub(crate) set: Members,
    /// Leaving a member out costs no more than its own contribution.
    pub(crate) alone: bool,
}

/// What one member does in every shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Program {
    roles: Vec<Role>,
    owners: Vec<usize>,
    /// Pushes that depend on one another.
    pub(crate) hops: u32,
    /// The order in which this member sends, where the schedule says one.
    sends: Option<Turns>,
}

/// The order in which one member sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Turns {
    /// The place of each send, by shard, receiver, and whether it carries the result.
    places: SortedMap<(u16, usize, bool), u16>,
    /// Bytes that may be under way before an answer is waited for.
    pub(crate) window: u64,
}

impl Program {
    pub(crate) fn new(schedule: Schedule, n: usize, me: usize) -> Self {
        match schedule.trees(n) {
            Some(trees) => Self::along(&*trees, n, me),
            None => {
                let all: Vec<Plain> = (0..n).map(|rank| doubling::plain(n, rank)).collect();
                let cost = schedule.cost(n);
                Self {
                    roles: vec![resolve(&all, me)],
                    owners: vec![doubling::owner(n)],
                    hops: cost.hops as u32,
                    sends: None,
                }
            }
        }
    }

    /// What a member does along trees that were found for the links of its group.
    pub(crate) fn solved(solution: &Solution, n: usize, me: usize) -> Self {
        let own = solution
            .sends
            .iter()
            .filter(|send| usize::from(send.from) == me);
        let places = (0u16..).zip(own);
        let places = places.map(|(place, send)| ((send.shard, send.to.into(), send.down), place));
        Self {
            sends: Some(Turns {
                places: places.collect(),
                window: solution.windows[me],
            }),
            ..Self::along(solution, n, me)
        }
    }

    /// The order in which it sends, where the schedule says one.
    pub(crate) const fn turns(&self) -> Option<&Turns> {
        self.sends.as_ref()
    }

    /// The same where the sites of the members are known, each by its first member.
    pub(crate) fn at_sites(schedule: Schedule, sites: &[u8], me: usize) -> Self {
        match schedule {
            Schedule::Sites { island } => {
                let islands = Islands::new(sites, usize::from(island));
                Self::along(&islands, sites.len(), me)
            }
            _ => Self::new(schedule, sites.len(), me),
        }
    }

    fn along(trees: &dyn Trees, n: usize, me: usize) -> Self {
        let cost = trees.cost(n);
        let shards = (0..cost.shards as usize).map(|shard| all_plain(trees, n, shard));
        let parts = shards.map(|all| {
            let end = all.iter().position(|p| p.ends).unwrap_or(0);
            (resolve(&all, me), end)
        });
        let (roles, owners) = parts.unzip();
        Self {
            roles,
            owners,
            hops: cost.hops as u32,
            sends: None,
        }
    }

    pub(crate) fn shards(&self) -> usize {
        self.roles.len()
    }

    pub(crate) fn role(&self, shard: u16) -> Option<&Role> {
        self.roles.get(usize::from(shard))
    }

    /// The rank whose name the aggregate of a shard bears.
    pub(crate) fn owner(&self, shard: u16) -> usize {
        self.owners.get(usize::from(shard)).copied().unwrap_or(0)
    }

    /// The shards in the order in which their contributions are needed: those first to which
    /// no other contribution is added before they are sent.
    pub(crate) fn order(&self) -> Vec<u16> {
        let before = |role: &Role| {
            let sets = role.stages.iter().flat_map(|stage| &stage.from);
            sets.fold(Members::NONE, |all, source| all | source.set)
                .count()
        };
        let turn = |shard: u16| {
            let ways = self.sends.iter().flat_map(|turns| &turns.places);
            let mut up = ways.filter(|((of, _, down), _)| *of == shard && !down);
            up.next().map(|(_, place)| *place)
        };
        let mut order: Vec<u16> = (0..self.roles.len() as u16).collect();
        order.sort_by_key(|shard| (self.role(*shard).map_or(0, before), turn(*shard)));
        order
    }

    /// Members whose values or aggregates come here.
    pub(crate) fn neighbours(&self) -> Members {
        let stages = self.roles.iter().flat_map(|role| &role.stages);
        let sources = stages.flat_map(|stage| stage.from.iter().map(|source| source.member));
        let servers = self.roles.iter().filter_map(|role| role.server);
        sources.chain(servers).collect()
    }
}

impl Turns {
    /// The place of a send in the order; the last for one that the schedule does not have.
    pub(crate) fn place(&self, shard: u16, to: usize, down: bool) -> u16 {
        self.places
            .get(&(shard, to, down))
            .copied()
            .unwrap_or(u16::MAX)
    }
}

/// Every rank's part in one shard.
fn all_plain(trees: &dyn Trees, n: usize, shard: usize) -> Vec<Plain> {
    let mut all = vec![Plain::default(); n];
    let mut children = vec![Vec::new(); n];
    for rank in 0..n {
        match trees.up(n, shard, rank) {
            Some(parent) => children[parent].push(rank),
            None => all[rank].ends = true,
        }
        all[rank].server = trees.down(n, shard, rank);
        if let Some(server) = all[rank].server {
            all[server].serves.push(rank);
        }
    }
    for (rank, below) in children.into_iter().enumerate() {
        if !below.is_empty() {
            all[rank].stages.push((None, below));
        }
        if let Some(parent) = trees.up(n, shard, rank) {
            all[rank].stages.push((Some(parent), Vec::new()));
        }
    }
    all
}

fn resolve(all: &[Plain], me: usize) -> Role {
    let plain = &all[me];
    let source = |member: usize| {
        let value = stage_towards(all, member, me);
        let sender = &all[member];
        Source {
            member,
            value: value as u8,
            set: set_of(all, member, value),
            alone: value == 0 && sender.stages[value].1.is_empty(),
        }
    };
    let stages = plain.stages.iter().map(|(to, from)| SumStage {
        to: *to,
        from: from.iter().map(|member| source(*member)).collect(),
    });
    Role {
        stages: stages.collect(),
        ends: plain.ends,
        serves: plain.serves.clone(),
        server: plain.server,
    }
}

fn stage_towards(all: &[Plain], member: usize, to: usize) -> usize {
    let found = all[member].stages.iter().position(|(t, _)| *t == Some(to));
    found.unwrap_or(0)
}

fn set_of(all: &[Plain], member: usize, value: usize) -> Members {
    let before = &all[member].stages[..value];
    before.iter().fold(Members::one(member), |set, (_, from)| {
        from.iter().fold(set, |set, other| {
            set | set_of(all, *other, stage_towards(all, *other, member))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Schedule; 12] = [
        Schedule::Butterfly,
        Schedule::Ring,
        Schedule::RecursiveDoubling,
        Schedule::HalvingDoubling,
        Schedule::BinaryTree,
        Schedule::DoubleTree,
        Schedule::Torus,
        Schedule::Hierarchical { island: 2 },
        Schedule::Hierarchical { island: 4 },
        Schedule::Hierarchical { island: 64 },
        Schedule::Sites { island: 3 },
        Schedule::Sites { island: 64 },
    ];

    const SIZES: [usize; 18] = [
        2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15, 16, 17, 24, 33, 64,
    ];

    /// These, and trees packed for each of some sizes, in which two members have slow lines.
    fn all_schedules() -> Vec<Schedule> {
        use crate::LinkTable;
        let packed = [3, 5, 8, 16].map(|n| {
            let rate = |i: usize, j: usize| if i.min(j) < 2 { 7 } else { 300 };
            let rows = (0..n).map(|i| (0..n).map(|j| rate(i, j)).collect());
            Schedule::synthesized(&LinkTable::new(rows.collect()).unwrap())
        });
        ALL.into_iter().chain(packed).collect()
    }

    /// Every member's program.
    fn programs(schedule: Schedule, n: usize) -> Vec<Program> {
        (0..n).map(|me| Program::new(schedule, n, me)).collect()
    }

    /// The hops after which a member has the value of a stage.
    fn hops_to(all: &[Program], shard: u16, member: usize, stage: usize) -> u64 {
        let stages = &all[member].role(shard).unwrap().stages[..stage];
        let sources = stages.iter().flat_map(|stage| &stage.from);
        sources
            .map(|s| 1 + hops_to(all, shard, s.member, usize::from(s.value)))
            .max()
            .unwrap_or(0)
    }

    /// The hops after which a member has the aggregate.
    fn hops_down(all: &[Program], shard: u16, member: usize) -> u64 {
        let role = all[member].role(shard).unwrap();
        match role.server {
            Some(server) => 1 + hops_down(all, shard, server),
            None => hops_to(all, shard, member, role.stages.len()),
        }
    }

    #[test]
    fn every_contribution_arrives_once_and_the_sum_reaches_all() {
        for schedule in all_schedules() {
            for n in SIZES {
                let all = programs(schedule, n);
                let everyone = Members::all(n);
                for shard in 0..all[0].shards() as u16 {
                    for (me, program) in all.iter().enumerate() {
                        let role = program.role(shard).unwrap();
                        let mut set = Members::one(me);
                        for source in role.stages.iter().flat_map(|s| &s.from) {
                            assert!((set & source.set).is_empty(), "{schedule:?} {n}: twice");
                            set |= source.set;
                        }
                        let whole = role.ends && set == everyone;
                        let served = role.server.is_some_and(|server| {
                            all[server].role(shard).unwrap().serves.contains(&me)
                        });
                        assert_eq!(whole, !served, "{schedule:?} {n}: rank {me}");
                        assert_eq!(program.owner(shard), all[0].owner(shard));
                    }
                    let owner = all[0].owner(shard);
                    assert!(all[owner].role(shard).unwrap().ends, "{schedule:?} {n}");
                }
            }
        }
    }

    #[test]
    fn costs_are_those_of_the_formulas() {
        for schedule in all_schedules() {
            for n in SIZES {
                let (all, cost) = (programs(schedule, n), schedule.cost(n));
                let mut sent = vec![0; n];
                let mut hops = 0;
                for shard in 0..cost.shards as u16 {
                    for (me, program) in all.iter().enumerate() {
                        let role = program.role(shard).unwrap();
                        let up = role.stages.iter().filter(|s| s.to.is_some()).count();
                        sent[me] += (up + role.serves.len()) as u64;
                        hops = hops.max(hops_down(&all, shard, me));
                    }
                }
                let found = (hops, sent.iter().sum(), *sent.iter().max().unwrap());
                let formula = (cost.hops, cost.pushes, cost.busiest);
                assert_eq!(found, formula, "{schedule:?} among {n}");
            }
        }
    }

    #[test]
    fn wherever_members_are_every_contribution_arrives_once() {
        for (sites, island) in [
            (&[0u8, 1, 0, 1, 0, 1, 0][..], 64),
            (&[0, 1, 0, 1, 0, 1, 0], 2),
            (&[0, 1, 2, 2, 0, 5, 0, 1], 3),
            (&[0, 0], 4),
        ] {
            let n = sites.len();
            let program = |me| Program::at_sites(Schedule::Sites { island }, sites, me);
            let all: Vec<Program> = (0..n).map(program).collect();
            assert!(all.iter().all(|program| program.owners == all[0].owners));
            for shard in 0..n as u16 {
                let owner = all[0].owner(shard);
                let role = all[owner].role(shard).unwrap();
                let sources = role.stages.iter().flat_map(|stage| &stage.from);
                let sets: Vec<Members> = sources.map(|source| source.set).collect();
                let together = sets.iter().fold(Members::one(owner), |all, set| all | *set);
                let count: usize = sets.iter().map(|set| set.count()).sum();
                assert_eq!((together, count + 1), (Members::all(n), n), "{sites:?}");
                for me in (0..n).filter(|me| *me != owner) {
                    let server = all[me].role(shard).unwrap().server.unwrap();
                    assert!(all[server].role(shard).unwrap().serves.contains(&me));
                    assert!(hops_down(&all, shard, me) <= u64::from(all[0].hops));
                }
            }
        }
    }

    #[test]
    fn a_torus_of_a_prime_is_a_ring() {
        for n in [2, 3, 5, 7, 13, 61] {
            for me in 0..n {
                let torus = Program::new(Schedule::Torus, n, me);
                assert_eq!(torus, Program::new(Schedule::Ring, n, me), "{n}");
            }
        }
    }

    #[test]
    fn no_rank_is_an_inner_one_of_both_trees() {
        for n in 2..=64 {
            for me in 0..n {
                let program = Program::new(Schedule::DoubleTree, n, me);
                let inner = |shard| !program.role(shard).unwrap().serves.is_empty();
                assert!(!(inner(0) && inner(1)), "{n}: {me}");
            }
        }
    }

    #[test]
    fn what_is_needed_first_is_encoded_first() {
        let program = Program::new(Schedule::Ring, 4, 2);
        assert_eq!(program.order(), [1, 0, 3, 2]);
    }
}
