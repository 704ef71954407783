/**
 * The tables of the database by name, in camelCase. Each feature declares its own next to its migrations, in `tables.ts`. A JSON
 * column is text; a time is milliseconds since 1970; an amount of money is 1e-9 US dollars; a yes or no is 1 or 0.
 */
export interface Tables {}
