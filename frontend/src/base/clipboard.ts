/** Copies text to the clipboard and saves files to disk, also where the page is served without TLS. */

export async function copyText(text: string): Promise<void> {
  if (navigator.clipboard) {
    try {
      await navigator.clipboard.writeText(text);
      return;
    } catch {
      // Refused (no permission in this frame): the old way still works.
    }
  }
  const area = document.createElement('textarea');
  area.value = text;
  area.style.position = 'fixed';
  area.style.opacity = '0';
  document.body.append(area);
  const before = document.activeElement;
  area.select();
  document.execCommand('copy');
  area.remove();
  if (before instanceof HTMLElement) before.focus();
}

export function saveUrl(url: string, name: string): void {
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
}

export function saveBlob(blob: Blob, name: string): void {
  const url = URL.createObjectURL(blob);
  saveUrl(url, name);
  window.setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

export function saveText(text: string, name: string, type: string): void {
  saveBlob(new Blob([text], { type }), name);
}
