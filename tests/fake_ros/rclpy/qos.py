qos_profile_sensor_data = "sensor data"
