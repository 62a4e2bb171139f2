//! Says which digits a file of images shows: 64 numbers (float32) an image, 8 rows of 8.

mod digits;

use std::error::Error;
use std::process::ExitCode;

const PIXELS: usize = 64;

fn read_images(path: &str) -> Result<Vec<f32>, Box<dyn Error>> {
    let bytes = std::fs::read(path)?;
    Ok(bytes.chunks_exact(4).map(|four| f32::from_le_bytes([four[0], four[1], four[2], four[3]])).collect())
}

fn classify() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("give a file of images, 256 bytes each")?;
    let images = read_images(&path)?;
    let logits = digits::Model::open()?.run(&images, images.len() / PIXELS)?;
    for row in logits.chunks_exact(10) {
        let best = (0..row.len()).max_by(|&a, &b| row[a].total_cmp(&row[b]));
        println!("{}", best.unwrap_or(0));
    }
    Ok(())
}

fn main() -> ExitCode {
    match classify() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("classify: {error}");
            ExitCode::FAILURE
        }
    }
}
