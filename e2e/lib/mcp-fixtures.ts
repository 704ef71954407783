import type { McpOffer, McpTool } from '@gatehouse/server';

type Result = Awaited<ReturnType<McpTool['run']>>;

const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==';
const wav = 'UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=';
const image = { type: 'image' as const, data: png, mimeType: 'image/png' };
const said = (text: string) => ({ type: 'text' as const, text });
const embedded = (uri: string, mimeType: string, text: string) => ({ type: 'resource' as const, resource: { uri, mimeType, text } });

function fixture(name: string, run: McpTool['run'], inputSchema: McpTool['about']['inputSchema'] = { type: 'object', properties: {} }): McpTool {
  return { about: { name, description: `Fixture ${name} of the conformance suite`, inputSchema }, run };
}

const answers =
  (...content: Result['content']): McpTool['run'] =>
  async () => ({ content });

const tools: readonly McpTool[] = [
  fixture('test_simple_text', answers(said('This is a simple text response for testing.'))),
  fixture('test_image_content', answers(image)),
  fixture('test_audio_content', answers({ type: 'audio', data: wav, mimeType: 'audio/wav' })),
  fixture('test_embedded_resource', answers(embedded('test://embedded-resource', 'text/plain', 'This is an embedded resource content.'))),
  fixture(
    'test_multiple_content_types',
    answers(
      said('Multiple content types test:'),
      image,
      embedded('test://mixed-content-resource', 'application/json', '{"test":"data","value":123}'),
    ),
  ),
  fixture('test_error_handling', async () => {
    throw new Error('This tool intentionally returns an error for testing');
  }),
  fixture('test_tool_with_progress', async (_args, _call, report) => {
    for (const progress of [0, 50, 100]) report?.({ progress, total: 100 });
    return { content: [said('Done.')] };
  }),
  fixture('json_schema_2020_12_tool', answers(said('Fits.')), {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    type: 'object',
    $defs: { address: { type: 'object', properties: { street: { type: 'string' }, city: { type: 'string' } } } },
    properties: { name: { type: 'string' }, address: { $ref: '#/$defs/address' } },
    additionalProperties: false,
  }),
];

/** What the conformance suite expects of a server, as far as the endpoint supports it. */
export const fixtureOffer: McpOffer = {
  tools: () => tools,
  resources: {
    list: async () => ({
      items: [
        { uri: 'test://static-text', name: 'Static text', description: 'A text', mimeType: 'text/plain' },
        { uri: 'test://static-binary', name: 'Static binary', description: 'A picture', mimeType: 'image/png' },
      ],
    }),
    templates: () => [{ uriTemplate: 'test://template/{id}/data', name: 'Template', description: 'Data by id', mimeType: 'application/json' }],
    async read(uri) {
      if (uri === 'test://static-text') return [{ uri, mimeType: 'text/plain', text: 'This is the content of the static text resource.' }];
      if (uri === 'test://static-binary') return [{ uri, mimeType: 'image/png', blob: png }];
      const id = /^test:\/\/template\/([^/]+)\/data$/.exec(uri)?.[1];
      if (id === undefined) return undefined;
      return [{ uri, mimeType: 'application/json', text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }) }];
    },
  },
  onToolsChanged: () => () => {},
};
