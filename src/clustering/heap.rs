//! A binary min-heap over fixed keys whose values can change. Depends on nothing.
//!
//! Equal values keep the order that SciPy's heap gives them, so that ties in the linkage fall as they do there.

/// Min-heap of `keys 0..n`, each with a value.
pub(super) struct Heap {
    values: Vec<f64>,
    key_at: Vec<usize>,
    place_of: Vec<usize>,
    /// The values once more, by key.
    value_of: Vec<f64>,
}

impl Heap {
    /// A heap over `values`, keyed by their index.
    pub(super) fn new(values: Vec<f64>) -> Self {
        let n = values.len();
        let (key_at, place_of, value_of) = ((0..n).collect(), (0..n).collect(), values.clone());
        let mut heap = Self { values, key_at, place_of, value_of };
        for place in (0..n / 2).rev() {
            heap.sift_down(place);
        }
        heap
    }

    /// Key and value of the smallest entry.
    pub(super) fn min(&self) -> (usize, f64) {
        (self.key_at[0], self.values[0])
    }

    /// Removes the smallest entry; its key must not be used again.
    pub(super) fn remove_min(&mut self) {
        let last = self.values.len() - 1;
        self.swap(0, last);
        self.values.pop();
        self.key_at.pop();
        self.sift_down(0);
    }

    /// Value of every key, the last one for a key that was removed.
    pub(super) fn by_key(&self) -> &[f64] {
        &self.value_of
    }

    /// Changes the value of `key`.
    pub(super) fn set(&mut self, key: usize, value: f64) {
        let place = self.place_of[key];
        let old = self.values[place];
        self.values[place] = value;
        self.value_of[key] = value;
        if value < old {
            self.sift_up(place);
        } else {
            self.sift_down(place);
        }
    }

    fn sift_up(&mut self, mut place: usize) {
        while place > 0 && self.values[(place - 1) / 2] > self.values[place] {
            self.swap(place, (place - 1) / 2);
            place = (place - 1) / 2;
        }
    }

    fn sift_down(&mut self, mut place: usize) {
        loop {
            let mut child = 2 * place + 1;
            if child >= self.values.len() {
                return;
            }
            if child + 1 < self.values.len() && self.values[child + 1] < self.values[child] {
                child += 1;
            }
            if self.values[place] <= self.values[child] {
                return;
            }
            self.swap(place, child);
            place = child;
        }
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.values.swap(a, b);
        self.key_at.swap(a, b);
        self.place_of.swap(self.key_at[a], self.key_at[b]);
    }
}
