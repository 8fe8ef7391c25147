//! What a kernel stored, as its log says.

use crate::failure::Failure;
use crate::program::Compiled;
use crate::table::Table;
use crate::terminal::Terminal;
use crate::units;
use loopwright::compile::LogRecord;
use loopwright::lower::KernelParam;
use loopwright::runtime::Routine;
use serde_json::{Value, json};

/// Stores shown to people; `--json` has all of them.
const SHOWN: usize = 50;

/// The stores of a routine's last run.
pub(crate) struct Stores {
    kernel: String,
    /// By the log's sites.
    buffers: Vec<Stored>,
    records: Vec<LogRecord>,
    /// How many more there were that the log had no room for.
    missed: u64,
}

/// Memory that is stored to.
struct Stored {
    name: String,
    /// Its shape, if it is an array of the program; else it counts its elements.
    shape: Option<Vec<usize>>,
}

impl Stores {
    /// What the routine made of a program stored.
    pub(crate) fn of(compiled: &Compiled, routine: &Routine) -> Result<Stores, Failure> {
        let (records, missed) = routine.stores()?;
        let program = compiled.program();
        let module = program.module();
        let kernel = module
            .functions
            .iter()
            .find(|function| function.name == program.kernel());
        let stored = |buffer: &str| {
            let named = kernel.and_then(|kernel| {
                let names = kernel.params.iter().map(|param| {
                    let value = &kernel.values[param.value];
                    value.name.as_str()
                });
                let mut named = names.zip(program.params());
                named.find(|(name, _)| *name == buffer)
            });
            let graph = program.graph();
            let array = match named {
                Some((_, KernelParam::Output(at))) => Some(&graph.outputs()[*at as usize].name),
                Some((_, KernelParam::Parameter(node))) => Some(&graph.node(*node).name),
                _ => None,
            };
            let Some(node) = array.and_then(|array| routine.context().node(array)) else {
                return Stored {
                    name: buffer.to_owned(),
                    shape: None,
                };
            };
            let name = match compiled.inner_name(&node.name) == node.name {
                true => compiled.shown_name(&node.name).to_owned(),
                // There is an output of the same name.
                false => format!("{} (state)", node.name),
            };
            Stored {
                name,
                shape: Some(node.shape),
            }
        };
        let sites = program.log_sites().iter();
        Ok(Stores {
            kernel: compiled.code.name().to_owned(),
            buffers: sites.map(|site| stored(&site.buffer)).collect(),
            records,
            missed,
        })
    }

    /// A table of the first ones, and how many there are.
    pub(crate) fn print(&self, terminal: &mut Terminal) -> Result<(), Failure> {
        let style = terminal.style;
        let logged = self.records.len();
        terminal.line("")?;
        terminal.line(style.strong(&format!(
            "{} in the last run",
            units::count(logged, "store")
        )))?;
        let mut table = Table::right(&[3, 4]);
        table.row(["kernel", "array", "index", "old", "new"]);
        for record in self.records.iter().take(SHOWN) {
            let buffer = &self.buffers[record.site];
            table.row([
                &self.kernel,
                &buffer.name,
                &buffer.place(record.index),
                &record.old.to_string(),
                &record.new.to_string(),
            ]);
        }
        if logged > 0 {
            for line in table.lines(2) {
                terminal.line(line)?;
            }
        }
        if logged > SHOWN {
            let more = logged - SHOWN;
            terminal.line(format!("  ... and {more} more; `--json` lists all"))?;
        }
        if self.missed > 0 {
            terminal.line(format!("  the log had no room for {} more", self.missed))?;
        }
        Ok(())
    }

    /// All of them. Values are text: JSON has no NaN, and not every integer.
    pub(crate) fn json(&self) -> Value {
        let records: Vec<Value> = self
            .records
            .iter()
            .map(|record| {
                json!({
                    "kernel": self.kernel,
                    "array": self.buffers[record.site].name,
                    "index": record.index,
                    "old": record.old.to_string(),
                    "new": record.new.to_string(),
                })
            })
            .collect();
        json!({ "records": records, "missed": self.missed })
    }
}

impl Stored {
    /// An element's place: along each dimension where the shape is known.
    fn place(&self, index: i64) -> String {
        let inside = |shape: &Vec<usize>| {
            let elements: usize = shape.iter().product();
            usize::try_from(index).is_ok_and(|index| index < elements)
        };
        let Some(shape) = self.shape.as_ref().filter(|shape| inside(shape)) else {
            return index.to_string();
        };
        let mut rest = index as usize;
        let mut places: Vec<String> = Vec::with_capacity(shape.len());
        for size in shape.iter().rev() {
            places.push((rest % size).to_string());
            rest /= size;
        }
        places.reverse();
        format!("[{}]", places.join(", "))
    }
}
