import * as z from 'zod';
import { once } from '../once.ts';

/** Name of a function tool. */
export const FunctionName = once(() =>
  z
    .string()
    .max(128)
    .regex(/^[a-zA-Z0-9_-]+$/, 'expected letters, digits, "_" and "-"'),
);

// A history carries what other servers and SDKs wrote into it: unknown keys of items and of their parts are ignored.

const itemFields = once(() => ({ id: z.string().nullish(), status: z.string().nullish() }));

/** A hint for providers that take one; other words than these change nothing. */
export const ImageDetail = once(() =>
  z.enum(['low', 'high', 'auto']).nullish().catch(null).describe('For providers that take such a hint; other values are ignored.'),
);

const InputText = once(() => z.object({ type: z.literal('input_text'), text: z.string() }).meta({ id: 'InputTextContent' }));
const InputImage = once(() =>
  z
    .object({
      type: z.literal('input_image'),
      image_url: z.string().describe('A data: URL or an https: URL.'),
      detail: ImageDetail(),
    })
    .meta({ id: 'InputImageContent' }),
);
const InputFile = once(() =>
  z
    .object({
      type: z.literal('input_file'),
      filename: z.string().min(1).max(255).nullish(),
      file_data: z.string().describe('A data: URL, or base64 of a file whose name shows its type: a PDF or text.'),
    })
    .meta({ id: 'InputFileContent' }),
);
const OutputText = once(() => z.object({ type: z.literal('output_text'), text: z.string() }).meta({ id: 'OutputTextInput' }));
/** A function result may be an image or a file that is not available here: the model is informed that it is left out. */
const ResultImage = once(() =>
  z.object({ type: z.literal('input_image'), image_url: z.string().nullish(), detail: ImageDetail() }).meta({ id: 'ResultImageContent' }),
);
const ResultFile = once(() =>
  z.object({ type: z.literal('input_file'), filename: z.string().nullish(), file_data: z.string().nullish() }).meta({ id: 'ResultFileContent' }),
);
const ResultContent = once(() => z.discriminatedUnion('type', [InputText(), OutputText(), ResultImage(), ResultFile()]));
const Refusal = once(() => z.object({ type: z.literal('refusal'), refusal: z.string() }).meta({ id: 'RefusalContent' }));

const type = once(() => z.literal('message').optional());
const InputMessage = once(() =>
  z.discriminatedUnion('role', [
    z.object({
      type: type(),
      role: z.literal('user'),
      content: z.union([z.string(), z.array(z.discriminatedUnion('type', [InputText(), InputImage(), InputFile()]))]),
      ...itemFields(),
    }),
    z.object({ type: type(), role: z.literal('system'), content: z.union([z.string(), z.array(InputText())]), ...itemFields() }),
    z.object({ type: type(), role: z.literal('developer'), content: z.union([z.string(), z.array(InputText())]), ...itemFields() }),
    z.object({
      type: type(),
      role: z.literal('assistant'),
      content: z.union([z.string(), z.array(z.discriminatedUnion('type', [OutputText(), Refusal()]))]),
      ...itemFields(),
    }),
  ]),
);

/** A group of functions as Codex sends each MCP server; functions of it are offered as `<namespace>__<name>`. */
export const Namespace = once(() =>
  z
    .string()
    .max(128)
    .regex(/^[a-zA-Z0-9_-]+$/, 'expected letters, digits, "_" and "-"'),
);
const ReasoningTexts = once(() => z.array(z.object({ text: z.string().nullish() })).nullish());

const CallId = once(() => z.string().min(1).max(512));

/** One item of the input of `POST /v1/responses`. */
export const ResponseInputItem = once(() =>
  z
    .discriminatedUnion(
      'type',
      [
        InputMessage(),
        z.object({
          type: z.literal('function_call'),
          call_id: CallId(),
          name: FunctionName(),
          namespace: Namespace().nullish(),
          arguments: z.string(),
          ...itemFields(),
        }),
        z.object({
          type: z.literal('function_call_output'),
          call_id: CallId(),
          output: z
            .union([z.string(), z.array(ResultContent())])
            .describe('Images and files go to the model behind the results; a note replaces what the model cannot see.'),
          ...itemFields(),
        }),
        z
          .object({ type: z.literal('reasoning'), summary: ReasoningTexts(), content: ReasoningTexts(), ...itemFields() })
          .describe('Sent with its answer to providers that accept reasoning in requests; encrypted content only to the provider that created it.'),
        z.object({ type: z.literal('item_reference'), id: z.string().min(1) }).describe('An item of the output of a stored response.'),
        z
          .object({ type: z.literal('compaction'), encrypted_content: z.string().min(1), ...itemFields() })
          .describe('What POST /v1/responses/compact returned, instead of the conversation that it condenses.'),
      ],
      { error: 'expected "message", "function_call", "function_call_output", "reasoning", "item_reference" or "compaction"' },
    )
    .meta({ id: 'ResponseInputItem' }),
);
export type ResponseInputItem = z.output<ReturnType<typeof ResponseInputItem>>;

const ItemStatus = once(() => z.enum(['in_progress', 'completed', 'incomplete']));

/** The only content of an answer. */
export const OutputTextPart = once(() =>
  z
    .strictObject({ type: z.literal('output_text'), text: z.string(), annotations: z.array(z.never()), logprobs: z.array(z.never()) })
    .meta({ id: 'OutputTextContent' }),
);

/** One item of the output of a response: the text of the answer, or a call of one of the caller's functions. */
export const ResponseOutputItem = once(() =>
  z
    .discriminatedUnion('type', [
      z.strictObject({
        type: z.literal('message'),
        id: z.string().startsWith('msg_'),
        status: ItemStatus(),
        role: z.literal('assistant'),
        content: z.array(OutputTextPart()),
      }),
      z.strictObject({
        type: z.literal('function_call'),
        id: z.string().startsWith('fc_'),
        status: ItemStatus(),
        call_id: z.string(),
        namespace: z.string().optional().describe('Of a function that came in a tool of type `namespace`.'),
        name: z.string(),
        arguments: z.string(),
      }),
    ])
    .meta({ id: 'ResponseOutputItem' }),
);
export type ResponseOutputItem = z.output<ReturnType<typeof ResponseOutputItem>>;
