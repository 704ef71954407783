import { contract } from '@gatehouse/contract';
import * as z from 'zod';

const { name, schedule, payload, sessionPolicy, toolPolicy } = contract['cron.add'].params.shape;
export { payload };
const { shape: updateShape } = contract['cron.update'].params;
const jobName = contract['cron.runs'].params.shape.jobName.unwrap();
const limit = z.int().min(1).max(100).default(20);

export const Add = z.strictObject({
  action: z.literal('add'),
  name,
  schedule,
  payload,
  sessionPolicy,
  toolPolicy,
  tell: z.enum(['nobody', 'inbox', 'conversation']).optional(),
});
export const Update = z.strictObject({
  action: z.literal('update'),
  jobName,
  name: updateShape.name,
  schedule: updateShape.schedule,
  payload: updateShape.payload,
  sessionPolicy: updateShape.sessionPolicy,
  toolPolicy: updateShape.toolPolicy,
  paused: updateShape.paused,
});
/** Parameters of the tool `cron`. */
export const Args = z.discriminatedUnion('action', [
  Add,
  Update,
  z.strictObject({ action: z.literal('list'), limit }),
  z.strictObject({ action: z.literal('remove'), jobName }),
  z.strictObject({ action: z.literal('status') }),
  z.strictObject({ action: z.literal('runs'), jobName, limit }),
  z.strictObject({ action: z.literal('run'), jobName }),
]);
export type Args = z.output<typeof Args>;

/** Parameters as shown to the model: vendors do not accept a union as the outermost schema. */
export const ModelArgs = z.strictObject({
  action: z
    .enum(['add', 'list', 'update', 'remove', 'status', 'runs', 'run'])
    .describe('status: the current time and the state of the schedule. runs: results of the runs of a job. run: one run now.'),
  jobName: z.string().optional().describe('update, remove, runs, run: name or id of the job.'),
  name: z.string().optional().describe('add: name of the new job; update: its new name.'),
  schedule: schedule.optional().describe('add, update.'),
  payload: payload
    .optional()
    .describe('add, update. agent_turn: you receive the message; delivery: the text goes verbatim to the inbox of your user, without a model.'),
  sessionPolicy,
  toolPolicy: toolPolicy.describe('Tools available to the turns of the job, within yours.'),
  tell: Add.shape.tell.describe('add, for an agent_turn: who receives its answer; nobody when absent.'),
  paused: updateShape.paused.describe('update.'),
  limit: limit.optional().describe('list, runs.'),
});
