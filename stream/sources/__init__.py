"""Where records come from: JSON Lines, delimited and Parquet files, and standard input.

Every source delivers operations in the order of its input, and each operation says where it stood.
Reading resumes exactly after such a position, in any process.
"""

from stream.sources.opening import Format, Source, open_source

__all__ = ["Format", "Source", "open_source"]
