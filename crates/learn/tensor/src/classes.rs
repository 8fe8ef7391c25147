//! Classes of axes that run along with each other.

use rustc_hash::FxHashSet;

/// Disjoint sets of axes, none of which has two axes of one owner.
pub(crate) struct Classes {
    parent: Vec<usize>,
    /// By root: the owners of the axes in its class.
    owners: Vec<FxHashSet<u32>>,
}

impl Classes {
    /// Each axis alone; `owner` says whose it is.
    pub(crate) fn new(owner: Vec<u32>) -> Classes {
        let owners = owner.into_iter().map(|owner| FxHashSet::from_iter([owner]));
        let owners: Vec<_> = owners.collect();
        Classes {
            parent: (0..owners.len()).collect(),
            owners,
        }
    }

    /// The axis that stands for the class.
    pub(crate) fn find(&mut self, axis: usize) -> usize {
        let mut root = axis;
        while self.parent[root] != root {
            root = self.parent[root];
        }
        let mut axis = axis;
        while self.parent[axis] != root {
            axis = std::mem::replace(&mut self.parent[axis], root);
        }
        root
    }

    /// Makes two classes one, unless an owner would then have two axes in it.
    pub(crate) fn join(&mut self, a: usize, b: usize) -> bool {
        let (a, b) = (self.find(a), self.find(b));
        if a == b {
            return true;
        }
        let (small, large) = match self.owners[a].len() <= self.owners[b].len() {
            true => (a, b),
            false => (b, a),
        };
        if self.owners[small]
            .iter()
            .any(|owner| self.owners[large].contains(owner))
        {
            return false;
        }
        let moved = std::mem::take(&mut self.owners[small]);
        self.owners[large].extend(moved);
        self.parent[small] = large;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_owner_has_two_axes_in_a_class() {
        // Axes 0 and 1 are of one tensor, 2 and 3 of another, 4 of a third.
        let mut classes = Classes::new(vec![0, 0, 1, 1, 2]);
        assert!(classes.join(0, 2));
        assert!(classes.join(2, 4));
        assert!(!classes.join(1, 4));
        assert!(classes.join(1, 3));
        assert_eq!(classes.find(0), classes.find(4));
        assert_ne!(classes.find(0), classes.find(1));
    }
}
