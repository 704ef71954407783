/** Which engine the tests of stores and servers use: `GATEHOUSE_TEST_DB=postgres npm test` runs them on PostgreSQL. */
export const testEngine: 'sqlite' | 'postgres' = process.env['GATEHOUSE_TEST_DB'] === 'postgres' ? 'postgres' : 'sqlite';
