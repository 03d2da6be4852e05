/** Finds again, after a reload, the capture and the monitor that the server still has under way. */
import { followCapture, loadCaptureInfo } from './capture';
import { followMonitor } from './monitor';

export async function findRunning(): Promise<void> {
  const info = await loadCaptureInfo();
  if (info?.running) void followCapture(info.running);
  if (info?.monitoring) void followMonitor(info.monitoring);
}
