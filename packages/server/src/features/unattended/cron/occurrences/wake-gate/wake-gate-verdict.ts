import * as z from 'zod';
import { parseJson } from '../../../../../kernel/json.ts';

/** A script's decision about the run of its job. */
export interface WakeGateVerdict {
  /** `failed_open`: the script did not decide, so the job runs. */
  readonly outcome: 'woke' | 'failed_open' | 'skipped';
  /** Untrusted text for the model; the run gets it fenced. */
  readonly context?: string;
  /** Delivered instead of the answer of a skipped run. */
  readonly deliver?: string;
  /** End of the script's output, for the log of the run. */
  readonly logs: string;
  /** Why the script did not decide. */
  readonly reason?: string;
}

const maxTextLength = 4_000;
const silent = /^(?:HEARTBEAT_OK|NO_REPLY|\[SILENT\])(?!\w)/;
const Decision = z.object({ wake: z.boolean(), context: z.string().optional(), deliver: z.string().optional() });

/** Parses the decision from the last non-empty line; `failure` says why the script did not finish. */
export function judgeOutput(output: string, failure: string | undefined): WakeGateVerdict {
  const logs = output.trimEnd().slice(-maxTextLength);
  const wholeAsContext = logs.trim() === '' ? {} : { context: logs };
  if (failure !== undefined) return { outcome: 'failed_open', ...wholeAsContext, logs, reason: failure };
  const line = output.trimEnd().split('\n').at(-1)?.trim() ?? '';
  if (line === '') return { outcome: 'woke', logs };
  const token = silent.exec(line)?.[0];
  if (token !== undefined) {
    const rest = token === '[SILENT]' ? line.slice(token.length).trim() : '';
    return { outcome: 'skipped', ...(rest !== '' && { deliver: rest.slice(0, maxTextLength) }), logs };
  }
  // Plain text without a decision becomes context of the run.
  if (!line.startsWith('{')) return { outcome: 'woke', ...wholeAsContext, logs };
  const decision = decisionIn(line);
  if (decision === undefined)
    return { outcome: 'failed_open', ...wholeAsContext, logs, reason: 'printed no decision: expected {"wake": true or false}' };
  const { wake, context = '', deliver = '' } = decision;
  if (wake) return { outcome: 'woke', ...(context !== '' && { context: context.slice(0, maxTextLength) }), logs };
  return { outcome: 'skipped', ...(deliver !== '' && { deliver: deliver.slice(0, maxTextLength) }), logs };
}

function decisionIn(line: string): z.output<typeof Decision> | undefined {
  try {
    return Decision.parse(parseJson(line));
  } catch {
    return undefined;
  }
}
