//! CustomResourceDefinitions: types, validation, structural schemas and their compiled plans.
