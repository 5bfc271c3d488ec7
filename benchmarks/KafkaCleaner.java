// Apache Kafka's log cleaner on partition directories, one after another, each in whole.
// Arguments: the directories, named TOPIC-PARTITION. Prints, for each one, the CPU time of the
// cleaner's thread in ns, the number of bytes read by its second pass, and the number of bytes that
// stay.
import java.io.File;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.Optional;
import java.util.Properties;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.Cleaner;
import org.apache.kafka.storage.internals.log.CleanerStats;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogToClean;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.SkimpyOffsetMap;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.utils.Throttler;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

public class KafkaCleaner {
    public static void main(String[] directories) throws Exception {
        ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        KafkaScheduler scheduler = new KafkaScheduler(1);
        scheduler.startup();
        Properties configs = new Properties();
        configs.put("cleanup.policy", "compact");
        configs.put("segment.bytes", Integer.getInteger("segment.bytes").toString());
        for (String directory : directories) {
            UnifiedLog log = UnifiedLog.create(
                new File(directory), new LogConfig(configs), 0L, 0L, scheduler, new BrokerTopicStats(),
                Time.SYSTEM, 300_000, new ProducerStateManagerConfig(86_400_000, false), 600_000,
                new LogDirFailureChannel(1), true, Optional.empty());
            log.updateHighWatermark(log.logEndOffset());
            Cleaner cleaner = new Cleaner(
                0, new SkimpyOffsetMap(128 << 20), 256 << 10, 1 << 20, 0.9,
                new Throttler(Double.MAX_VALUE, 300, "cleaner-io", "bytes", Time.SYSTEM), Time.SYSTEM,
                partition -> { });
            long end = log.activeSegment().baseOffset();
            LogToClean work = new LogToClean(log, 0L, end, false);
            long began = threads.getCurrentThreadCpuTime();
            CleanerStats stats = cleaner.clean(work).getValue();
            long took = threads.getCurrentThreadCpuTime() - began;
            System.out.println(took + " " + stats.bytesRead() + " " + stats.bytesWritten());
            log.close();
        }
        scheduler.shutdown();
        System.exit(0);
    }
}
