//! Pictures.

use crate::data::dataset::{Dataset, check_indices};
use crate::data::error::DataError;
use loopwright_array::Array;
use loopwright_ops::{DType, Scalar};
use std::path::{Path, PathBuf};

/// Reads pictures of one size into one array, `[picture, height, width, channel]`.
///
/// # Errors
/// [`DataError::Image`], and [`DataError::Unlike`] if they differ in dtype or shape.
pub fn read_images<P: AsRef<Path>>(paths: &[P]) -> Result<Array, DataError> {
    let Some((first, rest)) = paths.split_first() else {
        return Ok(Array::zeros(DType::U8, &[0, 0, 0, 0])?);
    };
    let first = loopwright_formats::image::read(first.as_ref())?;
    let mut shape = vec![paths.len()];
    shape.extend_from_slice(first.shape());
    let mut stacked = Array::zeros(first.dtype(), &shape)?;
    let part = first.bytes().len();
    let mut places = stacked.bytes_mut().chunks_exact_mut(part);
    let mut put = |picture: &Array| {
        if let Some(place) = places.next() {
            place.copy_from_slice(picture.bytes());
        }
    };
    put(&first);
    for path in rest {
        let path = path.as_ref();
        let picture = loopwright_formats::image::read(path)?;
        if (picture.dtype(), picture.shape()) != (first.dtype(), first.shape()) {
            return Err(DataError::Unlike {
                file: path.display().to_string(),
                dtype: picture.dtype(),
                shape: picture.shape().to_vec(),
                expected_dtype: first.dtype(),
                expected: first.shape().to_vec(),
            });
        }
        put(&picture);
    }
    Ok(stacked)
}

/// A set of pictures in folders, a folder for each class, which are read when they are asked for.
///
/// An example is a picture `[height, width, channel]`, as [`loopwright_formats::image::read`] gives it, and its class, `i64`. Classes are numbered
/// in the order of the folders' names, pictures come in the order of theirs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ImageFolder {
    classes: Vec<String>,
    files: Vec<(PathBuf, i64)>,
}

impl ImageFolder {
    /// Lists a folder: the files in each folder in it that end with `.png`, `.ppm` or `.pgm`.
    ///
    /// # Errors
    /// [`DataError::File`], and [`DataError::Broken`] where there is no folder inside.
    pub fn open(folder: &Path) -> Result<ImageFolder, DataError> {
        let folders = entries(folder, |path| path.is_dir())?;
        if folders.is_empty() {
            let reason = "it has no folders inside, one for each class";
            return Err(DataError::broken(&folder.display().to_string(), reason));
        }
        let (mut classes, mut files) = (Vec::new(), Vec::new());
        for (class, folder) in folders.into_iter().enumerate() {
            let pictures = entries(&folder, is_picture)?;
            files.extend(pictures.into_iter().map(|path| (path, class as i64)));
            let name = folder.file_name().unwrap_or_default();
            classes.push(name.to_string_lossy().into_owned());
        }
        Ok(ImageFolder { classes, files })
    }

    /// The names of the classes.
    pub fn classes(&self) -> &[String] {
        &self.classes
    }

    /// The files and their classes.
    pub fn files(&self) -> &[(PathBuf, i64)] {
        &self.files
    }
}

impl Dataset for ImageFolder {
    fn len(&self) -> usize {
        self.files.len()
    }

    fn batch(&self, indices: &[usize]) -> Result<Vec<Array>, DataError> {
        check_indices(indices, self.files.len())?;
        let paths: Vec<&Path> = indices
            .iter()
            .map(|index| self.files[*index].0.as_path())
            .collect();
        let labels: Vec<Scalar> = indices
            .iter()
            .map(|index| Scalar::i64(self.files[*index].1))
            .collect();
        let labels = Array::from_scalars(DType::I64, &[indices.len()], &labels)?;
        Ok(vec![read_images(&paths)?, labels])
    }
}

fn is_picture(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    let extension = extension.unwrap_or("").to_lowercase();
    path.is_file() && ["png", "ppm", "pgm"].contains(&extension.as_str())
}

/// What is in a folder, in the order of the names.
fn entries(folder: &Path, wanted: impl Fn(&Path) -> bool) -> Result<Vec<PathBuf>, DataError> {
    let failed = |error| DataError::file("list", &folder.display().to_string(), error);
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if wanted(&path) {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}
