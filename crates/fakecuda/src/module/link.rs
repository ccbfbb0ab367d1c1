//! Linking at run time: nothing is compiled, the parts are put into one image as they are.

use super::{Image, binary};
use crate::state::State;
use crate::status::{Code, Result};

/// A link that is not destroyed.
#[derive(Debug, Default)]
pub struct Link {
    parts: Vec<Vec<u8>>,
    /// What came out, for as long as the link lives.
    output: Option<Box<[u8]>>,
}

impl State {
    /// Begins a link.
    pub fn create_link(&mut self) -> u64 {
        self.modules.links.insert(Link::default())
    }

    /// Adds a part. Text must be PTX, other kinds are taken as they are.
    ///
    /// # Errors
    /// `INVALID_HANDLE`: no such link, or one that is complete. `INVALID_PTX`: the text is none.
    pub fn add_to_link(&mut self, handle: u64, part: &[u8], is_text: bool) -> Result {
        let link = self
            .modules
            .links
            .get_mut(handle)
            .ok_or(Code::INVALID_HANDLE)?;
        if link.output.is_some() {
            return Err(Code::INVALID_HANDLE);
        }
        if is_text && Image::of_bytes(part).is_err() {
            return Err(Code::INVALID_PTX);
        }
        link.parts.push(part.to_vec());
        Ok(())
    }

    /// The image of all parts, which stays where it is until the link is destroyed.
    ///
    /// # Errors
    /// `INVALID_HANDLE`: no such link.
    pub fn complete_link(&mut self, handle: u64) -> Result<&[u8]> {
        let link = self
            .modules
            .links
            .get_mut(handle)
            .ok_or(Code::INVALID_HANDLE)?;
        let parts = &link.parts;
        let pack = || binary::pack(parts.iter().map(Vec::as_slice)).into_boxed_slice();
        Ok(link.output.get_or_insert_with(pack))
    }

    /// Ends a link; its image goes.
    ///
    /// # Errors
    /// `INVALID_HANDLE`: no such link.
    pub fn destroy_link(&mut self, handle: u64) -> Result {
        self.modules
            .links
            .remove(handle)
            .map(drop)
            .ok_or(Code::INVALID_HANDLE)
    }
}
