import { AppError } from '../../../../kernel/app-error.ts';
import { recordAudit } from '../../../../kernel/audit.ts';
import { type CallContext, isAdmin, ownerOf } from '../../../../kernel/call-context.ts';
import type { Core } from '../../../../kernel/core.ts';
import type { HandlersOf } from '../../../../kernel/handlers.ts';
import type { AgentsApi } from '../../../agents/agents/api.ts';
import type { Browsers } from '../api.ts';
import type { Recorder } from './recorder.ts';
import type { RecordedStep, Recordings } from './recordings.ts';

interface RecordingMethodsDeps extends Pick<Core, 'db' | 'bus' | 'clock'> {
  readonly agents: Pick<AgentsApi, 'usable' | 'find'>;
  readonly defaultAgentOf: (call: CallContext) => string;
  readonly browsers: Pick<Browsers, 'running'>;
  readonly recorder: Pick<Recorder, 'gapOf' | 'idOf' | 'leave'>;
  readonly recordings: Recordings;
}

export type RecordingMethods = HandlersOf<`browser.recordings.${'list' | 'get' | 'picture' | 'delete'}`>;

/** What was done in browsers. An admin sees all steps, others those that they or their turns caused. */
export function createRecordingMethods(deps: RecordingMethodsDeps): RecordingMethods {
  const { agents, browsers, recorder, recordings } = deps;

  /** A suspended agent too. */
  function agentOf(agentId: string | undefined, call: CallContext): string {
    const wanted = call.agentCaller?.agentId ?? agentId ?? deps.defaultAgentOf(call);
    const found = agents.find(wanted);
    const isSuspended = found?.suspended === true && (call.identity.agents?.includes(wanted) ?? true);
    return isSuspended ? wanted : agents.usable(wanted, call).id;
  }

  async function recordingFor(agentId: string, id: string, call: CallContext) {
    const { steps, gaps } = await recordings.read(agentId, id);
    const last = recorder.gapOf(agentId, id);
    return {
      steps: isAdmin(call) ? steps : steps.filter(({ principalId }) => principalId === ownerOf(call)),
      gaps: last === undefined ? gaps : [...gaps, last],
    };
  }
  const stepsFor = async (...of: Parameters<typeof recordingFor>): Promise<readonly RecordedStep[]> => (await recordingFor(...of)).steps;

  const isRunning = (agentId: string, id: string): boolean => recorder.idOf(browsers.running(agentId)) === id;

  return {
    async 'browser.recordings.list'({ agentId: named, before, limit }, call) {
      const agentId = agentOf(named, call);
      const found: Awaited<ReturnType<RecordingMethods['browser.recordings.list']>>['recordings'] = [];
      for (const { id, bytes } of await recordings.list(agentId)) {
        if (before !== undefined && id >= before) continue;
        if (found.length === limit) return { recordings: found, more: true };
        const steps = await stepsFor(agentId, id, call);
        const [first, last] = [steps[0], steps.at(-1)];
        if (first === undefined || last === undefined) continue;
        const failed = steps.filter(({ ok }) => !ok).length;
        const address = steps.findLast(({ url }) => url !== undefined)?.url;
        found.push({
          recordingId: id,
          agentId,
          startedAt: first.atMs,
          lastAt: last.atMs,
          running: isRunning(agentId, id),
          steps: steps.length,
          failed,
          bytes,
          ...(address !== undefined && { url: address }),
        });
      }
      return { recordings: found, more: false };
    },

    async 'browser.recordings.get'({ agentId: named, recordingId }, call) {
      const agentId = agentOf(named, call);
      const { steps, gaps } = await recordingFor(agentId, recordingId, call);
      if (steps.length === 0) throw unknown();
      return {
        recordingId,
        agentId,
        running: isRunning(agentId, recordingId),
        steps: steps.map(({ atMs, picture, ...step }) => ({ ...step, at: atMs, picture: picture !== undefined })),
        gaps: [...gaps],
      };
    },

    async 'browser.recordings.picture'({ agentId: named, recordingId, step: number }, call) {
      const agentId = agentOf(named, call);
      const place = (await stepsFor(agentId, recordingId, call)).find(({ step }) => step === number)?.picture;
      const jpeg = place === undefined ? undefined : await recordings.picture(agentId, recordingId, place);
      if (jpeg === undefined) throw unknown();
      return { jpeg: jpeg.toString('base64') };
    },

    async 'browser.recordings.delete'({ agentId: named, recordingId }, call) {
      const agentId = agentOf(named, call);
      await recordAudit(deps, call, {
        actionType: 'browser.recordings.delete',
        classification: 'destructive',
        target: agentId,
        metadata: recordingId === undefined ? {} : { recordingId },
      });
      const wanted = recordingId === undefined ? (await recordings.list(agentId)).map(({ id }) => id) : [recordingId];
      let deleted = 0;
      for (const id of wanted) {
        if (isRunning(agentId, id)) await recorder.leave(agentId);
        if (await recordings.remove(agentId, id)) deleted += 1;
      }
      if (recordingId !== undefined && deleted === 0) throw unknown();
      return { deleted };
    },
  };
}

const unknown = (): AppError => new AppError('not_found', 'Recording, step or picture not found', { param: 'recordingId' });
