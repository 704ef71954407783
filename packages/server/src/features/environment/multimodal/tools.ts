import { once } from '@gatehouse/contract';
import * as z from 'zod';
import type { Tool, ToolResult } from '../../../runtime/tool.ts';
import type { MultimodalMethods } from './methods.ts';

const source = 'Path of a file in the workspace, id of an attachment (md_…), or an http(s) address.';
const imageArgs = once(() =>
  z.strictObject({
    image: z.string().min(1).max(2048).describe(source),
    question: z.string().min(1).max(4000).optional().describe('What you want to know; a detailed description otherwise.'),
  }),
);
const fileArgs = once(() =>
  z.strictObject({ attachment: z.string().min(1).max(2048).describe('Id of an attachment (md_…), or an http(s) address.') }),
);
const videoArgs = once(() => fileArgs().extend({ question: imageArgs().shape.question }));
const generateArgs = once(() =>
  z.strictObject({
    prompt: z.string().min(1).max(4000).describe('What the image shows.'),
    size: z
      .string()
      .regex(/^\d{2,4}x\d{2,4}$/)
      .optional()
      .describe('WIDTHxHEIGHT'),
    reference: z.string().min(1).max(2048).optional().describe('Attachment (md_…) or address of an image to change.'),
  }),
);
const speakArgs = once(() =>
  z.strictObject({
    text: z.string().min(1).max(4096),
    voice: z.string().min(1).max(100).optional().describe('Only when a certain voice is wanted.'),
  }),
);

export interface ToolsDeps {
  readonly methods: MultimodalMethods;
  /** Stores an image in the workspace; returns its path. */
  readonly keepImage: (agentId: string, base64: string, mimeType: string, tainted: boolean) => Promise<string>;
}

const outside = (name: string, content: string): ToolResult => ({ content, outside: { source: name } });
const isAddress = (text: string): boolean => /^https?:/i.test(text);
const destination = (text: string) => (isAddress(text) ? { kind: 'address' as const, url: text } : { kind: 'configured' as const });
const kindOf = (text: string) => (isAddress(text) ? 'url' : /^(?:\/media\/|md_)/.test(text) ? 'attachment' : 'file');

/** Tools of what is configured; the others would only cost tokens of every prompt. */
export function createTools({ methods, keepImage }: ToolsDeps) {
  const analyze: Tool<ReturnType<typeof imageArgs>> = {
    name: 'image_analyze',
    description: 'Looks at an image and describes it, or answers a question about it.',
    get args() {
      return imageArgs();
    },
    risk: 'outward',
    effect: 'pure',
    timeoutMs: 120_000,
    capability: 'orch:analyze',
    readsPrivate: true,
    destination: ({ image }) => destination(image),
    describe: ({ image }) => `Look at the image ${JSON.stringify(image)}`,
    async run({ image, question }, { call }) {
      const answer = await methods['image.analyze'](
        { source_type: kindOf(image), source: image, ...(question !== undefined && { prompt: question }) },
        call,
      );
      return outside('image', answer.description);
    },
  };
  const transcribe: Tool<ReturnType<typeof fileArgs>> = {
    name: 'transcribe_audio',
    description: 'Converts the speech of an audio or video file to text.',
    get args() {
      return fileArgs();
    },
    risk: 'outward',
    effect: 'pure',
    timeoutMs: 180_000,
    capability: 'orch:analyze',
    readsPrivate: true,
    destination: ({ attachment }) => destination(attachment),
    describe: ({ attachment }) => `Transcribe ${JSON.stringify(attachment)}`,
    async run({ attachment }, { call }) {
      const { text } = await methods['media.transcribe']({ attachment_url: attachment }, call);
      return text === '' ? { content: 'Nothing was said.' } : outside('recording', text);
    },
  };
  const video: Tool<ReturnType<typeof videoArgs>> = {
    name: 'describe_video',
    description: 'Watches a video and describes it, or answers a question about it.',
    get args() {
      return videoArgs();
    },
    risk: 'outward',
    effect: 'pure',
    timeoutMs: 300_000,
    capability: 'orch:analyze',
    readsPrivate: true,
    destination: ({ attachment }) => destination(attachment),
    describe: ({ attachment }) => `Watch the video ${JSON.stringify(attachment)}`,
    async run({ attachment, question }, { call }) {
      const answer = await methods['media.describe_video']({ attachment_url: attachment, ...(question !== undefined && { prompt: question }) }, call);
      return outside('video', answer.description);
    },
  };
  const generate: Tool<ReturnType<typeof generateArgs>> = {
    name: 'image_generate',
    description: 'Generates an image from a text, or changes one. It is shown in the chat, or stored in the workspace.',
    get args() {
      return generateArgs();
    },
    risk: 'write',
    effect: 'once',
    timeoutMs: 300_000,
    capability: 'orch:write',
    describe: ({ prompt }) => `Generate an image: ${prompt.slice(0, 200)}`,
    async run({ prompt, size, reference }, { call, agentId, tainted }) {
      const answer = await methods['image.generate'](
        { prompt, ...(size !== undefined && { size }), ...(reference !== undefined && { reference_image: reference }) },
        call,
      );
      if (!answer.success) return { content: answer.error, isError: true };
      if ('delivered' in answer) return { content: 'The image was sent to the chat.' };
      // Text in the reference, which comes from outside, is text in the image.
      const isTainted = tainted() || reference !== undefined;
      return { content: `The image is in the workspace: ${await keepImage(agentId, answer.imageBase64, answer.mimeType, isTainted)}` };
    },
  };
  const speak: Tool<ReturnType<typeof speakArgs>> = {
    name: 'tts_synthesize',
    description: 'Converts a text to speech: an audio file in the workspace, which is deleted after one hour.',
    get args() {
      return speakArgs();
    },
    risk: 'write',
    effect: 'once',
    timeoutMs: 180_000,
    capability: 'orch:write',
    describe: ({ text }) => `Speak: ${text.slice(0, 200)}`,
    async run(args, { call }) {
      const { filePath, mimeType, sizeBytes } = await methods['tts.synthesize'](args, call);
      return { content: `The speech is in the workspace: ${filePath} (${mimeType}, ${sizeBytes} bytes)` };
    },
  };
  return { analyze, transcribe, video, generate, speak };
}
