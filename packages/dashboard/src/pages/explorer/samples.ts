/** One HTTP request, as it is shown in a language. */
export interface SampleRequest {
  readonly method: string;
  /** The whole address. */
  readonly url: string;
  readonly body?: unknown;
  /** Name of a file that is sent instead of a JSON body, as the part `file` of a form. */
  readonly file?: string;
  /** The answer is an event stream, or bytes: it is written as it arrives. */
  readonly raw?: boolean;
  /** The route needs no token. */
  readonly open?: boolean;
}

export const languages = ['curl', 'JavaScript', 'Python'] as const;
export type Language = (typeof languages)[number];

/**
 * Returns a request as a program that runs without further packages: on Node 20 and later, on Python 3.8 and later. The token is read from
 * GATEHOUSE_TOKEN, because copied programs are pasted into chats and tickets.
 */
export function sampleOf(language: Language, request: SampleRequest): string {
  return { curl, JavaScript: javaScript, Python: python }[language](request);
}

const shellText = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`;

function curl({ method, url, body, file, raw, open }: SampleRequest): string {
  return [
    `curl ${raw === true ? '--no-buffer ' : ''}${method === 'GET' || (method === 'POST' && (body !== undefined || file !== undefined)) ? '' : `-X ${method} `}${shellText(url)}`,
    ...(open === true ? [] : [`-H "authorization: Bearer $GATEHOUSE_TOKEN"`]),
    ...(body === undefined ? [] : [`-H 'content-type: application/json'`, `-d ${shellText(JSON.stringify(body))}`]),
    ...(file === undefined ? [] : [`-F ${shellText(`file=@${file}`)}`]),
  ].join(' \\\n  ');
}

function javaScript({ method, url, body, file, raw, open }: SampleRequest): string {
  const headers = [
    ...(open === true ? [] : ['authorization: `Bearer ${process.env.GATEHOUSE_TOKEN}`']),
    ...(body === undefined ? [] : [`'content-type': 'application/json'`]),
  ];
  const options = [
    ...(method === 'GET' ? [] : [`method: '${method}'`]),
    ...(headers.length === 0 ? [] : [`headers: { ${headers.join(', ')} }`]),
    ...(body === undefined ? [] : [`body: JSON.stringify(${indented(JSON.stringify(body, null, 2), 2)})`]),
    ...(file === undefined ? [] : ['body: form']),
  ];
  return [
    ...(file === undefined
      ? []
      : [
          `import { openAsBlob } from 'node:fs';`,
          '',
          'const form = new FormData();',
          `form.set('file', await openAsBlob(${JSON.stringify(file)}), ${JSON.stringify(file)});`,
        ]),
    `const response = await fetch(${JSON.stringify(url)}${options.length === 0 ? '' : `, {\n  ${options.join(',\n  ')},\n}`});`,
    raw === true ? 'for await (const bytes of response.body) process.stdout.write(bytes);' : 'console.log(await response.json());',
  ].join('\n');
}

/** A form is written by hand: the standard library of Python has none. */
function python({ method, url, body, file, raw, open }: SampleRequest): string {
  const headers = [
    ...(open === true ? [] : [`"authorization": "Bearer " + os.environ["GATEHOUSE_TOKEN"]`]),
    ...(body === undefined ? [] : [`"content-type": "application/json"`]),
    ...(file === undefined ? [] : [`"content-type": "multipart/form-data; boundary=" + boundary`]),
  ];
  const parts = [
    JSON.stringify(url),
    ...(method === 'GET' ? [] : [`method="${method}"`]),
    ...(headers.length === 0 ? [] : [`headers={${headers.join(', ')}}`]),
    ...(body === undefined ? [] : [`data=json.dumps(${indented(pythonValue(body), 4)}).encode()`]),
    ...(file === undefined ? [] : ['data=form']),
  ];
  return [
    ...(body === undefined && raw === true ? [] : ['import json']),
    ...(open === true ? [] : ['import os']),
    ...(file === undefined ? [] : ['import secrets']),
    ...(raw === true ? ['import sys'] : []),
    'import urllib.request',
    '',
    ...(file === undefined
      ? []
      : [
          'boundary = secrets.token_hex(16)',
          `with open(${JSON.stringify(file)}, "rb") as opened:`,
          '    content = opened.read()',
          `head = f'--{boundary}\\r\\ncontent-disposition: form-data; name="file"; filename=${JSON.stringify(file)}\\r\\n\\r\\n'`,
          'form = head.encode() + content + f"\\r\\n--{boundary}--\\r\\n".encode()',
        ]),
    `request = urllib.request.Request(\n    ${parts.join(',\n    ')},\n)`,
    'with urllib.request.urlopen(request) as response:',
    ...(raw === true ? ['    for line in response:', '        sys.stdout.buffer.write(line)'] : ['    print(json.load(response))']),
  ].join('\n');
}

const indented = (text: string, by: number): string => text.replaceAll('\n', `\n${' '.repeat(by)}`);

/** JSON as a literal of Python: texts are written alike, the three words are not. */
function pythonValue(value: unknown): string {
  const lines = (open: string, entries: readonly string[], close: string): string =>
    entries.length === 0 ? `${open}${close}` : `${open}\n    ${entries.map((entry) => indented(entry, 4)).join(',\n    ')},\n${close}`;
  if (Array.isArray(value)) return lines('[', value.map(pythonValue), ']');
  if (typeof value === 'object' && value !== null)
    return lines(
      '{',
      Object.entries(value).map(([name, one]) => `${JSON.stringify(name)}: ${pythonValue(one)}`),
      '}',
    );
  if (value === null || value === undefined) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  return JSON.stringify(value);
}
