//! JSON that is written to a file as it comes, through a buffer of fixed size.

use std::ffi::c_int;

/// The buffer of a [`Writer`].
pub type Buffer = [u8; 1024];

/// Writes a JSON document to a file descriptor.
pub struct Writer<'a> {
    fd: c_int,
    buffer: &'a mut Buffer,
    used: usize,
    failed: bool,
    /// Whether the next value is the first of its object or array, or belongs to a name.
    first: bool,
}

impl<'a> Writer<'a> {
    pub fn new(fd: c_int, buffer: &'a mut Buffer) -> Self {
        Self {
            fd,
            buffer,
            used: 0,
            failed: false,
            first: true,
        }
    }

    /// Writes what is left. Whether all was written.
    pub fn finish(mut self) -> bool {
        self.raw(b"\n");
        self.flush();
        !self.failed
    }

    fn flush(&mut self) {
        let mut rest = &self.buffer[..self.used];
        while !rest.is_empty() && !self.failed {
            // SAFETY: the bytes are valid for reading.
            let wrote = unsafe { libc::write(self.fd, rest.as_ptr().cast(), rest.len()) };
            match usize::try_from(wrote) {
                Ok(wrote) if wrote > 0 => rest = &rest[wrote..],
                Err(_) if super::end::errno() == libc::EINTR => {}
                _ => self.failed = true,
            }
        }
        self.used = 0;
    }

    fn raw(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            if self.used == self.buffer.len() {
                self.flush();
            }
            self.buffer[self.used] = byte;
            self.used += 1;
        }
    }

    fn separate(&mut self) {
        if !self.first {
            self.raw(b",");
        }
        self.first = false;
    }

    /// The name of the next value in an object.
    pub fn name(&mut self, name: &str) -> &mut Self {
        self.separate();
        self.raw(b"\"");
        self.raw(name.as_bytes());
        self.raw(b"\":");
        self.first = true;
        self
    }

    /// An object, whose fields `fields` writes.
    pub fn object(&mut self, fields: impl FnOnce(&mut Self)) {
        self.enclosed(b"{", b"}", fields);
    }

    /// An array, whose values `values` writes.
    pub fn array(&mut self, values: impl FnOnce(&mut Self)) {
        self.enclosed(b"[", b"]", values);
    }

    fn enclosed(&mut self, open: &[u8], close: &[u8], content: impl FnOnce(&mut Self)) {
        self.separate();
        self.raw(open);
        self.first = true;
        content(self);
        self.raw(close);
        self.first = false;
    }

    pub fn number(&mut self, mut number: u64) {
        self.separate();
        let mut digits = [0; 20];
        let mut at = digits.len();
        loop {
            at -= 1;
            digits[at] = b'0' + (number % 10) as u8;
            number /= 10;
            if number == 0 {
                break;
            }
        }
        self.raw(&digits[at..]);
    }

    pub fn truth(&mut self, truth: bool) {
        self.separate();
        self.raw(if truth { b"true" } else { b"false" });
    }

    pub fn null(&mut self) {
        self.separate();
        self.raw(b"null");
    }

    /// A string. What is not UTF-8 becomes U+FFFD.
    pub fn string(&mut self, bytes: &[u8]) {
        self.separate();
        self.raw(b"\"");
        for chunk in bytes.utf8_chunks() {
            for &byte in chunk.valid().as_bytes() {
                match byte {
                    b'"' | b'\\' => self.raw(&[b'\\', byte]),
                    0..0x20 => {
                        const HEX: &[u8; 16] = b"0123456789abcdef";
                        let (high, low) =
                            (HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]);
                        self.raw(&[b'\\', b'u', b'0', b'0', high, low]);
                    }
                    _ => self.raw(&[byte]),
                }
            }
            if !chunk.invalid().is_empty() {
                self.raw("\u{fffd}".as_bytes());
            }
        }
        self.raw(b"\"");
    }
}
