"""The Array API standard: every function beside that of array-api-strict."""
