"""One suite for the SDKs of all languages: scenarios as data, a driver program per SDK, a runner and a fault proxy."""
