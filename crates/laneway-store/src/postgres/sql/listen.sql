-- One channel for all stores of a database: what is sent names the store.
LISTEN laneway;
