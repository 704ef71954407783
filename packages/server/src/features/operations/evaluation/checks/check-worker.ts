import { parentPort, workerData } from 'node:worker_threads';
import * as z from 'zod';
import { parseJson } from '../../../../kernel/json.ts';
import type { CheckAnswer, CheckRequest } from './check-request.ts';

// Sent by check-thread.ts, within one process.
const { answer, patterns, jsonSchema } = workerData as CheckRequest;

// The time limit is for the checks, not for the start of the thread.
parentPort?.postMessage('started');

const maxIssues = 5;

function checkSchema(schema: Readonly<Record<string, unknown>>): Pick<CheckAnswer, 'problem' | 'unusable'> {
  let parser: z.ZodType;
  try {
    parser = z.fromJSONSchema(schema);
  } catch (error) {
    return { unusable: error instanceof Error ? error.message : String(error) };
  }
  const [, block] = /^\s*```(?:json)?\s*\n([\s\S]*?)\n\s*```\s*$/.exec(answer) ?? [];
  let value: unknown;
  try {
    value = parseJson(block ?? answer);
  } catch {
    return { problem: 'the answer is not JSON' };
  }
  const parsed = parser.safeParse(value);
  if (parsed.success) return {};
  const issues = parsed.error.issues.slice(0, maxIssues).map(({ path, message }) => `${path.length === 0 ? '(root)' : path.join('.')}: ${message}`);
  return { problem: issues.join('; ') };
}

const done: CheckAnswer = {
  matches: patterns.map((source) => new RegExp(source).test(answer)),
  ...(jsonSchema !== undefined && checkSchema(jsonSchema)),
};
parentPort?.postMessage(done);
