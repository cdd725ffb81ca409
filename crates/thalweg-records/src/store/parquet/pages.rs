//! The encoded pages of a column chunk, with their headers.
//!
//! In the file the dictionary comes first, although it is complete last.

use std::io::{self, Read, Write};

use bytes::Bytes;
use parquet::basic::{Compression, Encoding};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::statistics::Statistics;
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;

use super::compress::Zstd;
use super::dictionary::Dictionary;

/// Encoded pages of a column, in order of arrival.
pub(crate) struct Pages {
    dictionary: TrackedWrite<Vec<u8>>,
    data: TrackedWrite<Vec<u8>>,
    /// Bytes before compression.
    uncompressed: usize,
    /// Values in data pages.
    values: usize,
}

impl Pages {
    /// Creates an empty list of pages.
    pub(crate) fn new() -> Pages {
        let [dictionary, data] = [(); 2].map(|()| TrackedWrite::new(Vec::new()));
        Pages { dictionary, data, uncompressed: 0, values: 0 }
    }

    /// Returns the size of the data pages in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.data.bytes_written()
    }

    /// Adds a page of `values` values and `size` uncompressed bytes.
    ///
    /// # Errors
    /// If the `parquet` crate cannot write its header.
    pub(crate) fn add(
        &mut self,
        values: usize,
        encoding: Encoding,
        buf: Bytes,
        size: usize,
    ) -> Result<(), ParquetError> {
        self.values += values;
        let page = Page::DataPage {
            buf,
            num_values: values as u32,
            encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        let page = CompressedPage::new(page, size);
        self.uncompressed += SerializedPageWriter::new(&mut self.data).write_page(page)?.uncompressed_size;
        Ok(())
    }

    /// Encodes the dictionary page, after all values are numbered.
    ///
    /// # Errors
    /// If zstd fails.
    pub(crate) fn set_dictionary(
        &mut self,
        dictionary: &Dictionary,
        zstd: &mut Zstd,
    ) -> Result<(), ParquetError> {
        let page = Page::DictionaryPage {
            buf: zstd.compress(dictionary.plain())?,
            num_values: dictionary.entries(),
            encoding: Encoding::PLAIN,
            is_sorted: false,
        };
        let page = CompressedPage::new(page, dictionary.plain().len());
        let written = SerializedPageWriter::new(&mut self.dictionary).write_page(page)?;
        self.uncompressed += written.uncompressed_size;
        Ok(())
    }

    /// Closes the column and returns its footer entry; [`encoded`](Pages::encoded) then has its bytes.
    ///
    /// # Errors
    /// If the `parquet` crate rejects the metadata.
    pub(crate) fn close(
        &mut self,
        column: ColumnDescPtr,
        codec: Compression,
        encodings: Vec<Encoding>,
        statistics: Option<Statistics>,
    ) -> Result<ColumnCloseResult, ParquetError> {
        self.dictionary.flush()?;
        self.data.flush()?;
        let data_page_offset = self.dictionary.bytes_written();
        let bytes = data_page_offset + self.data.bytes_written();
        let metadata = ColumnChunkMetaData::builder(column)
            .set_compression(codec)
            .set_encodings(encodings)
            .set_num_values(self.values as i64)
            .set_total_compressed_size(bytes as i64)
            .set_total_uncompressed_size(self.uncompressed as i64)
            .set_data_page_offset(data_page_offset as i64)
            .set_dictionary_page_offset((data_page_offset > 0).then_some(0));
        let metadata = match statistics {
            Some(statistics) => metadata.set_statistics(statistics),
            None => metadata,
        };
        Ok(ColumnCloseResult {
            bytes_written: bytes as u64,
            rows_written: self.values as u64,
            metadata: metadata.build()?,
            bloom_filter: None,
            column_index: None,
            offset_index: None,
        })
    }

    /// Returns the bytes of a closed column.
    pub(crate) fn encoded(&self) -> Encoded<'_> {
        Encoded { dictionary: self.dictionary.inner(), data: self.data.inner() }
    }

    /// Removes all pages; keeps the memory.
    ///
    /// # Errors
    /// Never: writes to memory succeed.
    pub(crate) fn clear(&mut self) -> Result<(), ParquetError> {
        for pages in [&mut self.dictionary, &mut self.data] {
            let mut memory = std::mem::replace(pages, TrackedWrite::new(Vec::new())).into_inner()?;
            memory.clear();
            *pages = TrackedWrite::new(memory);
        }
        (self.uncompressed, self.values) = (0, 0);
        Ok(())
    }
}

/// The bytes of a closed column, dictionary page first.
pub(crate) struct Encoded<'a> {
    dictionary: &'a [u8],
    data: &'a [u8],
}

impl Length for Encoded<'_> {
    fn len(&self) -> u64 {
        (self.dictionary.len() + self.data.len()) as u64
    }
}

impl<'a> ChunkReader for Encoded<'a> {
    type T = io::Chain<&'a [u8], &'a [u8]>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        let start = start as usize;
        let in_data = start.saturating_sub(self.dictionary.len());
        let dictionary = self.dictionary.get(start..).unwrap_or_default();
        Ok(dictionary.chain(self.data.get(in_data..).unwrap_or_default()))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        let mut bytes = Vec::with_capacity(length);
        self.get_read(start)?.take(length as u64).read_to_end(&mut bytes)?;
        Ok(bytes.into())
    }
}
