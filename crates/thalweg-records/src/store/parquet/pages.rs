//! The encoded pages of one column of one row group, each with its header.
//!
//! In the file the dictionary comes first, though it is known last.

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

/// Pages of a column, as they come.
pub(crate) struct Pages {
    dictionary: TrackedWrite<Vec<u8>>,
    data: TrackedWrite<Vec<u8>>,
    /// Bytes before compression.
    uncompressed: usize,
    /// Values in data pages.
    values: usize,
}

impl Pages {
    /// None so far.
    pub(crate) fn new() -> Pages {
        let [dictionary, data] = [(); 2].map(|()| TrackedWrite::new(Vec::new()));
        Pages { dictionary, data, uncompressed: 0, values: 0 }
    }

    /// Bytes of data pages.
    pub(super) fn bytes(&self) -> usize {
        self.data.bytes_written()
    }

    /// Adds a page of so many values, which had `size` bytes before it was compressed.
    ///
    /// # Errors
    /// If the crate cannot write its header.
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

    /// The page of the dictionary, once all values are numbered.
    ///
    /// # Errors
    /// What zstd says.
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

    /// What the file's footer says of the column; [`encoded`](Pages::encoded) has its bytes then.
    ///
    /// # Errors
    /// If the crate finds what it is told to be wrong.
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

    /// The column's bytes, once it is closed.
    pub(crate) fn encoded(&self) -> Encoded<'_> {
        Encoded { dictionary: self.dictionary.inner(), data: self.data.inner() }
    }

    /// Forgets all pages, and keeps the memory.
    ///
    /// # Errors
    /// None: memory takes all that is written.
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

/// A closed column's bytes: the dictionary's page first, as files have it.
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
