# SPDX-License-Identifier: BSD-3-Clause
"""Tables in files and in engines (Dask, Spark), read in partitions."""
