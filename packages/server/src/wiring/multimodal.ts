import type { ModelWork } from '../features/access/budgets/api.ts';
import type { AgentsApi } from '../features/agents/agents/api.ts';
import { defaultAgentOf, modelsFor, ownModel } from '../features/conversations/turns/preparation/resolve-target.ts';
import { documentTypes } from '../features/environment/documents/api.ts';
import type { MediaLibrary } from '../features/environment/media/api.ts';
import { createMultimodal } from '../features/environment/multimodal/multimodal.ts';
import { isInternal } from '../features/environment/workspace/taint/internal-names.ts';
import type { CallContext, ChatEndpoint } from '../kernel/call-context.ts';
import { createEgress } from '../kernel/egress.ts';
import type { Models } from '../llm/models.ts';
import type { Assembly } from './assembly.ts';
import type { Channels } from './channels.ts';
import type { Late } from './late.ts';
import type { Tooling } from './tooling.ts';

export interface MultimodalWiring {
  readonly agents: AgentsApi;
  readonly models: Models;
  readonly work: ModelWork;
  readonly media: MediaLibrary;
  readonly tooling: Pick<Tooling, 'web' | 'workspace' | 'openedJail'>;
  readonly channels: Late<Channels>;
}

/** Wires speech, images and video. */
export function wireMultimodal({ building, options, environment, live, core, clock }: Assembly, deps: MultimodalWiring) {
  const { agents, models, media, tooling } = deps;
  const egressFor = (allowHosts: readonly string[]) => createEgress({ clock, ...options.overrides?.egress, allowHosts });
  return building.use(
    createMultimodal({
      ...core('media'),
      config: live(({ media: section, tts, imageGen, providers, links }) => ({
        transcription: section.transcription,
        vision: section.vision,
        video: section.video,
        tts,
        imageGen,
        modelProviders: providers,
        maxLinks: links.maxLinks,
      })),
      env: environment,
      egressFor,
      agents,
      work: deps.work,
      models,
      modelsFor: (agent) => modelsFor(agent, models, ownModel(agent, models)),
      media,
      defaultAgentOf: (call) => defaultAgentOf(agents, call.identity),
      capacity: tooling.workspace.capacity,
      taints: tooling.workspace.taints,
      isInternal,
      jail: tooling.openedJail,
      processLinks: (text, call) => tooling.web.methods['link.process']({ text }, call),
      documents: () => ({ enabled: true, supportedMimes: [...documentTypes] }),
      async deliver({ bytes, extension }, call) {
        const endpoint = call.agentCaller?.turn?.endpoint;
        if (endpoint === undefined) throw new TypeError('a call that is delivered has an endpoint');
        const { mediaId } = await media.save({ body: once(bytes), size: bytes.byteLength, fileName: `image.${extension}` }, call);
        await attach(deps.channels.value, endpoint, mediaId, call);
      },
    }),
  );
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

async function attach({ methods }: Channels, to: ChatEndpoint, mediaId: string, call: CallContext): Promise<void> {
  const { instance, channelType, conversationId, threadId, conversationKind } = to;
  const endpoint = { channelType, channelInstanceId: instance, conversationId, conversationKind, ...(threadId !== null && { threadId }) };
  await methods['message.attach']({ endpoint, attachment_url: mediaId, attachment_type: 'image' }, call);
}
