/** Downloads a value as a JSON file. */
export function saveJson(fileName: string, value: unknown): void {
  saveBlob(fileName, new Blob([JSON.stringify(value, null, 2)], { type: 'application/json' }));
}

/** Downloads bytes as a file. */
export function saveBlob(fileName: string, content: Blob): void {
  const address = URL.createObjectURL(content);
  const link = document.createElement('a');
  link.href = address;
  link.download = fileName;
  link.click();
  // The download has started by then; keeping the URL longer keeps the data in memory.
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
