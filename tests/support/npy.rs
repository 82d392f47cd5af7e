//! Reading of numpy captures.

use std::fs::File;
use std::path::Path;

use npyz::{DType, NpyFile, Order};

/// An array as f64 in row-major order, whatever it is stored as.
pub struct Array {
    pub shape: Vec<usize>,
    pub data: Vec<f64>,
}

impl Array {
    /// The values as f32; exact if they were stored so.
    pub fn to_f32(&self) -> Vec<f32> {
        self.data.iter().map(|&v| v as f32).collect()
    }

    /// The values as indices.
    pub fn to_usize(&self) -> Vec<usize> {
        self.data.iter().map(|&v| v as usize).collect()
    }
}

/// Reads a `.npy` file.
pub fn load(path: &Path) -> Array {
    let file = File::open(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    read(NpyFile::new(std::io::BufReader::new(file)).unwrap())
}

/// Reads one array of a `.npz` file.
pub fn load_npz(path: &Path, name: &str) -> Array {
    let mut archive = npyz::npz::NpzArchive::open(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let file = archive.by_name(name).unwrap();
    read(file.unwrap_or_else(|| panic!("{}: no array {name}", path.display())))
}

fn read<R: std::io::Read>(file: NpyFile<R>) -> Array {
    let shape: Vec<usize> = file.shape().iter().map(|&n| n as usize).collect();
    let order = file.order();
    let DType::Plain(kind) = file.dtype() else { panic!("structured array") };
    let data: Vec<f64> = match kind.to_string().trim_start_matches(['<', '|', '>', '=']) {
        "f8" => file.into_vec::<f64>().unwrap(),
        "f4" => file.into_vec::<f32>().unwrap().into_iter().map(f64::from).collect(),
        "i8" => file.into_vec::<i64>().unwrap().into_iter().map(|v| v as f64).collect(),
        "i4" => file.into_vec::<i32>().unwrap().into_iter().map(f64::from).collect(),
        "i1" => file.into_vec::<i8>().unwrap().into_iter().map(f64::from).collect(),
        "u1" => file.into_vec::<u8>().unwrap().into_iter().map(f64::from).collect(),
        other => panic!("unexpected type {other}"),
    };
    if order == Order::C || shape.len() < 2 {
        return Array { shape, data };
    }
    let [rows, columns] = shape[..] else { panic!("column-major array of rank {}", shape.len()) };
    let data = (0..rows * columns).map(|i| data[i % columns * rows + i / columns]).collect();
    Array { shape, data }
}
