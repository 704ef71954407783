import { explainSession } from './explain/store.ts';
import { readHealth } from './health/store.ts';
import { searchTraces } from './search/search-store.ts';

export const diagnosisOperations = [searchTraces, explainSession, readHealth];
