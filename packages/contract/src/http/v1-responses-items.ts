import * as z from 'zod';

/** Name of a function tool. */
export const FunctionName = z
  .string()
  .max(128)
  .regex(/^[a-zA-Z0-9_-]+$/, 'expected letters, digits, "_" and "-"');

const itemFields = {
  id: z.string().nullish(),
  status: z.enum(['in_progress', 'completed', 'incomplete']).nullish(),
};

const InputText = z.strictObject({ type: z.literal('input_text'), text: z.string() }).meta({ id: 'InputTextContent' });
const InputImage = z
  .strictObject({
    type: z.literal('input_image'),
    image_url: z.string().describe('A data: URL or an https: URL.'),
    detail: z.enum(['low', 'high', 'auto']).nullish().describe('For providers that take such a hint.'),
  })
  .meta({ id: 'InputImageContent' });
const InputFile = z
  .strictObject({
    type: z.literal('input_file'),
    filename: z.string().min(1).max(255).nullish(),
    file_data: z.string().describe('A data: URL, or base64 of a file whose name tells its type: a PDF or text.'),
  })
  .meta({ id: 'InputFileContent' });
const OutputText = z
  .strictObject({
    type: z.literal('output_text'),
    text: z.string(),
    annotations: z.array(z.unknown()).nullish(),
    logprobs: z.array(z.unknown()).nullish(),
  })
  .meta({ id: 'OutputTextInput' });
const Refusal = z.strictObject({ type: z.literal('refusal'), refusal: z.string() }).meta({ id: 'RefusalContent' });

const type = z.literal('message').optional();
const InputMessage = z.discriminatedUnion('role', [
  z.strictObject({
    type,
    role: z.literal('user'),
    content: z.union([z.string(), z.array(z.discriminatedUnion('type', [InputText, InputImage, InputFile]))]),
    ...itemFields,
  }),
  z.strictObject({ type, role: z.literal('system'), content: z.union([z.string(), z.array(InputText)]), ...itemFields }),
  z.strictObject({ type, role: z.literal('developer'), content: z.union([z.string(), z.array(InputText)]), ...itemFields }),
  z.strictObject({
    type,
    role: z.literal('assistant'),
    content: z.union([z.string(), z.array(z.discriminatedUnion('type', [OutputText, Refusal]))]),
    phase: z.enum(['commentary', 'final_answer']).nullish(),
    ...itemFields,
  }),
]);

const CallId = z.string().min(1).max(512);

/** One item of the input of `POST /v1/responses`. */
export const ResponseInputItem = z
  .discriminatedUnion(
    'type',
    [
      InputMessage,
      z.strictObject({ type: z.literal('function_call'), call_id: CallId, name: FunctionName, arguments: z.string(), ...itemFields }),
      z.strictObject({
        type: z.literal('function_call_output'),
        call_id: CallId,
        output: z.union([z.string(), z.array(InputText)]),
        ...itemFields,
      }),
      z
        .strictObject({
          type: z.literal('reasoning'),
          summary: z.array(z.unknown()).max(0, noReasoning()),
          content: z.array(z.unknown()).max(0, noReasoning()).nullish(),
          encrypted_content: z.literal('', noReasoning()).nullish(),
          ...itemFields,
        })
        .describe('Only without content: the reasoning of a model cannot be handed back to another one.'),
      z.strictObject({ type: z.literal('item_reference'), id: z.string().min(1) }).describe('An item of the output of a stored response.'),
    ],
    { error: 'expected "message", "function_call", "function_call_output", "reasoning" or "item_reference"' },
  )
  .meta({ id: 'ResponseInputItem' });
export type ResponseInputItem = z.output<typeof ResponseInputItem>;

function noReasoning(): string {
  return 'expected nothing: reasoning cannot be handed back';
}

const ItemStatus = z.enum(['in_progress', 'completed', 'incomplete']);

/** The only content of an answer. */
export const OutputTextPart = z
  .strictObject({ type: z.literal('output_text'), text: z.string(), annotations: z.array(z.never()), logprobs: z.array(z.never()) })
  .meta({ id: 'OutputTextContent' });

/** One item of the output of a response: the text of the answer, or a call of one of the caller's functions. */
export const ResponseOutputItem = z
  .discriminatedUnion('type', [
    z.strictObject({
      type: z.literal('message'),
      id: z.string().startsWith('msg_'),
      status: ItemStatus,
      role: z.literal('assistant'),
      content: z.array(OutputTextPart),
    }),
    z.strictObject({
      type: z.literal('function_call'),
      id: z.string().startsWith('fc_'),
      status: ItemStatus,
      call_id: z.string(),
      name: z.string(),
      arguments: z.string(),
    }),
  ])
  .meta({ id: 'ResponseOutputItem' });
export type ResponseOutputItem = z.output<typeof ResponseOutputItem>;
