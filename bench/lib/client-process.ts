import { readFileSync } from 'node:fs';
import { churn, type Churn } from './churn.ts';
import { httpLoad, type HttpLoad } from './http-load.ts';
import { wsLoad, type WsLoad } from './ws-load.ts';

// The load client as a separate process: one job as JSON on standard input, one line of JSON as answer.
const job: { readonly http: HttpLoad } | { readonly ws: WsLoad } | { readonly churn: Churn } = JSON.parse(readFileSync(0, 'utf8'));
const result = 'http' in job ? await httpLoad(job.http) : 'ws' in job ? await wsLoad(job.ws) : await churn(job.churn);
process.stdout.write(`${JSON.stringify(result)}\n`, () => process.exit(0));
