import { contract, once } from '@gatehouse/contract';
import * as z from 'zod';

const added = () => contract['cron.add'].params.shape;
const updated = () => contract['cron.update'].params.shape;
const jobName = () => contract['cron.runs'].params.shape.jobName.unwrap();
export const payload = () => added().payload;
const limit = once(() => z.int().min(1).max(100).default(20));

export const Add = once(() =>
  z.strictObject({
    action: z.literal('add'),
    name: added().name,
    schedule: added().schedule,
    payload: payload(),
    sessionPolicy: added().sessionPolicy,
    toolPolicy: added().toolPolicy,
    tell: z.enum(['nobody', 'inbox', 'conversation']).optional(),
  }),
);
export const Update = once(() =>
  z.strictObject({
    action: z.literal('update'),
    jobName: jobName(),
    name: updated().name,
    schedule: updated().schedule,
    payload: updated().payload,
    sessionPolicy: updated().sessionPolicy,
    toolPolicy: updated().toolPolicy,
    paused: updated().paused,
  }),
);
/** Parameters of the tool `cron`. */
export const Args = once(() =>
  z.discriminatedUnion('action', [
    Add(),
    Update(),
    z.strictObject({ action: z.literal('list'), limit: limit() }),
    z.strictObject({ action: z.literal('remove'), jobName: jobName() }),
    z.strictObject({ action: z.literal('status') }),
    z.strictObject({ action: z.literal('runs'), jobName: jobName(), limit: limit() }),
    z.strictObject({ action: z.literal('run'), jobName: jobName() }),
  ]),
);
export type Args = z.output<ReturnType<typeof Args>>;

/** Parameters as shown to the model: vendors do not accept a union as the outermost schema. */
export const ModelArgs = once(() =>
  z.strictObject({
    action: z
      .enum(['add', 'list', 'update', 'remove', 'status', 'runs', 'run'])
      .describe('status: the current time and the state of the schedule. runs: results of the runs of a job. run: one run now.'),
    jobName: z.string().optional().describe('update, remove, runs, run: name or id of the job.'),
    name: z.string().optional().describe('add: name of the new job; update: its new name.'),
    schedule: added().schedule.optional().describe('add, update.'),
    payload: payload()
      .optional()
      .describe('add, update. agent_turn: you receive the message; delivery: the text goes verbatim to the inbox of your user, without a model.'),
    sessionPolicy: added().sessionPolicy,
    toolPolicy: added().toolPolicy.describe('Tools available to the turns of the job, within yours.'),
    tell: Add().shape.tell.describe('add, for an agent_turn: who receives its answer; nobody when absent.'),
    paused: updated().paused.describe('update.'),
    limit: limit().optional().describe('list, runs.'),
  }),
);
