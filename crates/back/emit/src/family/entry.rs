//! How the host enters a kernel: `void entry(void *const *args, const lw_runtime *rt)`.
//!
//! Each argument is a pointer: to the memory of a buffer, or to a scalar. The runtime says how large the
//! grid of work-items is, and runs parallel loops. Languages whose kernels are launched otherwise say so
//! in [`Dialect::entry`](crate::Dialect::entry).

use super::declare;
use crate::dialect::{Declared, Dialect, EntryKernel, Linkage, Spelled};
use crate::expression::Expr;
use crate::pieces::Pieces;
use loopwright_kernel::{Type, WorkItem};
use std::fmt::Write;

/// What the host hands to every entry point.
pub(crate) const RUNTIME: &str = "\
typedef struct lw_runtime {
    void *context;
    void (*parallel_for)(void *context, int64_t count,
                         void (*task)(void *environment, int64_t begin, int64_t stop),
                         void *environment);
    int64_t global_size[3];
    int64_t local_size[3];
} lw_runtime;
";

const ITEM: &str = "\
typedef struct lw_item {
    int64_t global_id[3], local_id[3], group_id[3];
    int64_t global_size[3], local_size[3], group_count[3];
} lw_item;
";

/// The loops of an entry point whose kernel asks about work-items.
const GRID_LOOPS: &str = "    lw_item item;
    for (int axis = 0; axis < 3; axis++) {
        item.global_size[axis] = rt->global_size[axis];
        item.local_size[axis] = rt->local_size[axis];
        item.group_count[axis] = rt->global_size[axis] / rt->local_size[axis];
    }
    for (int64_t z = 0; z < item.global_size[2]; z++)
    for (int64_t y = 0; y < item.global_size[1]; y++)
    for (int64_t x = 0; x < item.global_size[0]; x++) {
        const int64_t id[3] = {x, y, z};
        for (int axis = 0; axis < 3; axis++) {
            item.global_id[axis] = id[axis];
            item.local_id[axis] = id[axis] % item.local_size[axis];
            item.group_id[axis] = id[axis] / item.local_size[axis];
        }
";

/// The entry point of a kernel.
pub(crate) fn entry<D: Dialect + ?Sized>(
    dialect: &D,
    kernel: &EntryKernel<'_>,
    pieces: &mut Pieces,
) -> Spelled<String> {
    let mut arguments = Vec::with_capacity(kernel.params.len() + 2);
    for (position, param) in kernel.params.iter().enumerate() {
        let nameless = Declared {
            name: "",
            noalias: false,
            ..*param
        };
        let ty = declare::variable(dialect, &nameless, pieces)?;
        arguments.push(match param.ty {
            Type::Pointer(..) => format!("({ty})args[{position}]"),
            _ => format!("*({ty} *)args[{position}]"),
        });
    }
    if kernel.work_items {
        arguments.push("&item".to_owned());
    }
    if kernel.runtime {
        arguments.push("rt".to_owned());
    }
    let call = format!("{}({});", kernel.body, arguments.join(", "));
    let mut text = format!(
        "{}void {}(void *const *args, const lw_runtime *rt) {{\n",
        dialect.linkage(Linkage::Entry),
        kernel.symbol
    );
    if kernel.work_items {
        need_item(pieces)?;
        let _ = writeln!(text, "{GRID_LOOPS}        {call}\n    }}\n}}");
    } else {
        let _ = writeln!(text, "    {call}\n}}");
    }
    Ok(text)
}

/// The struct in which a kernel's functions hand on what they know of their work-item.
pub(crate) fn need_item(pieces: &mut Pieces) -> Spelled<()> {
    pieces.need("lw_item", |_| Ok(ITEM.to_owned()))
}

/// What a work-item asks about itself.
pub(crate) fn work_item(query: WorkItem, axis: u8) -> Expr {
    let field = match query {
        WorkItem::GlobalId => "global_id",
        WorkItem::LocalId => "local_id",
        WorkItem::GroupId => "group_id",
        WorkItem::GlobalSize => "global_size",
        WorkItem::LocalSize => "local_size",
        WorkItem::GroupCount => "group_count",
    };
    Expr::primary(format!("item->{field}[{axis}]"))
}
