"""Maps and tables: what the cells of a group have to do with each other."""
