//! From a graph to a [`Plan`](loopwright_looptree::Plan): the schedule that is chosen without a run, and the cost model.
//!
//! [`schedule`] makes a plan for a [`Target`](loopwright_looptree::Target), and says for every loop why it is there
//! ([`Reasons`]). It decides step by step and never looks back, so its time grows with the program and not with the
//! square of it. [`estimate`](fn@estimate) predicts how long any plan takes, whoever made it; searches and editors ask it. Neither asks
//! the machine at hand anything.
//!
//! ```
//! use loopwright_graph::parse;
//! use loopwright_looptree::Target;
//! use loopwright_scheduler::{Order, estimate, schedule};
//! use loopwright_text::Source;
//!
//! let program = "loopwright program 1
//! input A: f32[i=64, k=32]
//! input B: f32[k, j=48]
//! output C = sum[k](A * B)
//! ";
//! let graph = parse(&Source::new("product.lw", program)).unwrap().with_stores();
//! let wide = Target { vector_bytes: 64, vector_registers: 32, ..Target::SCALAR };
//! let made = schedule(graph, &wide, Order::Free)?;
//! assert!(made.plan.to_string().contains("vectorize"));
//!
//! let (graph, schedule, tree) = (made.plan.graph(), made.plan.schedule(), made.plan.tree());
//! let cost = |target| estimate(graph, schedule, tree, target, &|_| None);
//! assert!(cost(&wide)?.seconds < cost(&Target::SCALAR)?.seconds);
//! # Ok::<(), loopwright_looptree::ScheduleError>(())
//! ```

#![forbid(unsafe_code)]

mod contraction;
mod estimate;
mod matrix_unit;
mod nest;
mod parallel;
mod parts;
mod prepare;
mod recurrence;
mod schedule;
mod steps;

pub use estimate::{BoundBy, Estimate, StepEstimate, TYPICAL_SIZE, estimate};
pub use schedule::{Effort, Explained, Order, Reasons, default_schedule, schedule, schedule_with};
